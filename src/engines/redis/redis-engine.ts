import type { Clock } from '../../base/clock.js'
import { boxClosed, IndeterminateError, InvalidArgumentError } from '../../base/errors.js'
import type { KeptLimiter } from '../../engine/limits/report.js'
import type { ReservePermits } from '../../engine/limits/reservation.js'
import type {
  Alive,
  Commit,
  Engine,
  Enqueue,
  Read,
  ReadOutcome,
  RecordedId,
  SignOutcome,
  SweepExpired,
  Inspect,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  RequestReport,
  PermitReservation,
  SessionInfo,
  Versioned,
} from '../../engine/contract.js'
import type { RedisOptions } from './redis-options.js'
import type { IdentifiedReport, RedisServer, VoteTerms } from './redis-server.js'
import { keysOf } from './call.js'
import { CallErrors } from './call-errors.js'
import { CodeCalls } from './code-calls.js'
import { clusterUrl } from './cluster-node.js'
import type { LinkMaker } from './clients/redis-link.js'
import type { EngineParts } from './engine-parts.js'
import { groupedBy } from '../../base/grouped.js'
import { redisGuarantees } from './guarantees.js'
import { HELD_LAYOUTS } from './held-layout.js'
import { heldText } from './held-text.js'
import { RedisLimits } from './limits.js'
import { Names } from './names.js'
import { Operator } from './operator.js'
import { OwnRequests } from './own-requests.js'
import { Replicas } from './replicas.js'
import { TableCalls } from './table-calls.js'
import { sentAgain } from './sent-again.js'
import { timeOf } from './clients/reply.js'

/** Maximum number of requests that one operation of a sign of life names. */
const MAX_NAMED = 100

/**
 * The engine for all processes that reach the same Redis server or cluster. The server executes the lock table as code.
 * On Redis Cluster, a call reaches only the keys of one hash slot. So this engine rejects locks and transactions on
 * several slots, and reads slot by slot.
 */
export class RedisEngine implements Engine, RedisServer {
  readonly name: string
  readonly prefix: string
  readonly guarantees = redisGuarantees
  readonly reportsContention = false
  readonly canSteal = true
  readonly coversBySigns = true
  readonly #parts: EngineParts
  readonly #calls: TableCalls
  readonly #requests: OwnRequests
  readonly #operator: Operator
  readonly #limits: RedisLimits
  #listener: Listener | undefined

  constructor(
    makeLink: LinkMaker,
    { layout: layoutName, minReplicas, prefix }: Required<RedisOptions>,
    clock: Clock,
  ) {
    const link = makeLink({
      message: (channel, text) => this.#received(channel, text),
      resubscribed: () => {
        // mutant: resubscribed-without-look
        this.#requests.lookAtAll()
        this.#listener?.missed()
      },
    })
    const layout = HELD_LAYOUTS[layoutName]
    const names = new Names(prefix, link.cluster, layout.companions)
    this.name = link.name
    this.prefix = prefix
    const errors = new CallErrors(link.name, names, layout.noun)
    const parts = { link, code: new CodeCalls(link), clock, names, layout, errors }
    this.#parts = parts
    this.#requests = new OwnRequests(parts, request => this.submit({ type: 'cancel', request }))
    const replicas = minReplicas > 0 ? new Replicas(minReplicas) : undefined
    this.#calls = new TableCalls(parts, replicas, this.#requests)
    this.#operator = new Operator(parts, this.#calls)
    this.#limits = new RedisLimits(parts)
  }

  /** @throws InvalidArgumentError when the server is a node of a cluster; UnavailableError */
  async join(member: SessionInfo, listener: Listener): Promise<void> {
    const { link, names } = this.#parts
    await link.connect()
    const url = await clusterUrl(link, names)
    if (url !== undefined)
      throw new InvalidArgumentError(
        `${this.name} is a node of a Redis Cluster: open ${url}, or pass a client that is connected to the cluster`,
        { engine: this.name },
      )
    this.#calls.begin({ member, memberText: heldText(member) })
    this.#requests.begin(member.session, listener)
    this.#listener = listener
  }

  /** @param vote makes an enqueue, a check-in or a renewal a vote, see {@link RedisServer}. */
  submit<O extends Operation>(operation: O, vote?: VoteTerms): Promise<OutcomeOf<O>>
  submit(operation: Operation, vote?: VoteTerms): Promise<unknown> {
    if (!this.#listener) return Promise.reject(boxClosed(this.name))
    switch (operation.type) {
      case 'alive':
        return this.#alive(operation)
      case 'sweepExpired':
        return this.#sweepExpired(operation)
      case 'watch':
        return this.#attempt(() =>
          sentAgain(() => this.#parts.link.subscribe(this.#parts.names.value(operation.key))),
        )
      case 'unwatch':
        return this.#attempt(() => this.#parts.link.unsubscribe(this.#parts.names.value(operation.key)))
      case 'inspect':
        return this.#inspect(operation)
      case 'list':
        return this.#attempt(() => this.#operator.list(operation))
      case 'forceRelease':
        return this.#attempt(() => this.#operator.forceRelease(operation))
      case 'revoke':
        return this.#attempt(() => this.#operator.revoke(operation))
      case 'read':
        return this.#parts.link.cluster ? this.#readBySlot(operation) : this.#send(operation)
      case 'enqueue':
      case 'commit': {
        const refusal = this.#refusalOf(operation)
        return refusal ? Promise.reject(refusal) : this.#send(operation, vote)
      }
      default:
        return this.#send(operation, vote)
    }
  }

  wallClock(): Promise<number> {
    // Without a key, all processes ask the same server of a Cluster.
    return this.#attempt(async () => timeOf(await sentAgain(() => this.#parts.link.command('', ['TIME']))))
  }

  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    return this.#attempt(() => this.#limits.reservePermits(request))
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#attempt(async () => {
      const found = await this.#operator.limiters(isMeant)
      const reports = await Promise.all(found.map(limiter => this.#limits.report(limiter)))
      return reports.filter(report => report !== undefined)
    })
  }

  async reports(inspect: Inspect): Promise<readonly IdentifiedReport[]> {
    return this.#attempt(() => this.#operator.reports(inspect))
  }

  async listen(): Promise<void> {
    await this.#attempt(() => this.#requests.listen(this.#parts.names.group('')))
  }

  async raise(least: number): Promise<void> {
    await this.#calls.send(this.#parts.names.group(''), { type: 'raise', least })
  }

  /** Cancels all requests that may be on the server. A request that can't be cancelled now expires with its lease. */
  async leave(): Promise<void> {
    // An engine that is still joining has no requests, and its connections end here, too.
    const cancelled = this.#requests.end().map(request => this.submit({ type: 'cancel', request }))
    this.#listener = undefined
    await Promise.allSettled(cancelled)
    await this.#parts.link.close()
  }

  /** The error for an operation with an invalid lock key, or on Cluster, with keys in several hash slots. */
  #refusalOf(operation: Enqueue | Commit): InvalidArgumentError | undefined {
    const isLock = operation.type === 'enqueue'
    const taken = isLock && operation.request.claims.find(({ key }) => this.#parts.names.isTaken(key))
    if (taken) return this.#parts.errors.taken(taken.key)
    if (!this.#parts.link.cluster) return undefined
    const read = isLock ? operation.read : undefined
    const [first, ...others] = [...(read?.keys ?? []), ...keysOf(operation)]
    const spread = others.find(key => this.#parts.names.group(key) !== this.#parts.names.group(first!))
    if (spread === undefined) return undefined
    return this.#parts.errors.spread(isLock && !read ? 'lock' : 'transaction', first!, spread)
  }

  async #readBySlot(read: Read): Promise<ReadOutcome> {
    const keysBySlot = groupedBy(read.keys, key => this.#parts.names.group(key))
    const idsBySlot = groupedBy(read.ids, ({ key }) => this.#parts.names.group(key))
    const values = new Map<string, Versioned>()
    const seen = new Map<RecordedId, boolean>()
    const parts = [...new Set([...keysBySlot.keys(), ...idsBySlot.keys()])].map(async slot => {
      const [keys, ids] = [keysBySlot.get(slot) ?? [], idsBySlot.get(slot) ?? []]
      const outcome = (await this.#calls.send(slot, { type: 'read', keys, ids })) as ReadOutcome
      for (const [index, key] of keys.entries()) values.set(key, outcome.values[index]!)
      for (const [index, id] of ids.entries()) seen.set(id, outcome.seen[index]!)
    })
    await Promise.all(parts)
    return { values: read.keys.map(key => values.get(key)!), seen: read.ids.map(id => seen.get(id)!) }
  }

  #send(operation: Operation, vote?: VoteTerms): Promise<unknown> {
    this.#requests.sending(operation)
    return this.#calls.send(this.#parts.names.group(keysOf(operation)[0]!), operation, vote)
  }

  /**
   * Sends a sign for many requests as several operations, so that other calls can come in between. If some of them
   * fail, their requests are due: an unreachable node of a cluster must not stop the signs to the others.
   */
  async #alive({ session, requests }: Alive): Promise<SignOutcome> {
    const byGroup = groupedBy(requests, ({ claims }) => this.#parts.names.group(claims[0]!.key))
    const named: (readonly LockRequest[])[] = []
    const sent: Promise<unknown>[] = []
    for (const [group, together] of byGroup)
      for (let from = 0; from < together.length; from += MAX_NAMED) {
        const part = together.slice(from, from + MAX_NAMED)
        const operation = { type: 'alive', session, requests: part } as const
        this.#requests.sending(operation)
        named.push(part)
        sent.push(this.#calls.send(group, operation))
      }
    const settled = await Promise.allSettled(sent)
    if (settled.every(({ status }) => status === 'rejected'))
      throw (settled[0] as PromiseRejectedResult).reason
    const outcomes = settled.map((answer, index) =>
      answer.status === 'fulfilled'
        ? (answer.value as SignOutcome)
        : { due: named[index]!.map(({ id }) => id), next: Infinity },
    )
    return {
      due: outcomes.flatMap(({ due }) => due),
      next: Math.min(...outcomes.map(({ next }) => next)),
    }
  }

  async #sweepExpired({ keys }: SweepExpired): Promise<undefined> {
    const byGroup = groupedBy(keys, key => this.#parts.names.group(key))
    await Promise.all(
      [...byGroup].map(([group, together]) =>
        this.#calls.send(group, { type: 'sweepExpired', keys: together }),
      ),
    )
    return undefined
  }

  async #inspect(inspect: Inspect): Promise<readonly RequestReport[]> {
    const reports = await this.reports(inspect)
    return reports.map(({ id: _, order: __, ...report }) => report)
  }

  #received(channel: string, text: string): void {
    if (this.#requests.message(channel, text)) return
    this.#listener?.changed(this.#parts.names.keyOf('value', channel)!)
  }

  async #attempt<T>(task: () => Promise<T>): Promise<T> {
    if (!this.#listener) throw boxClosed(this.name)
    try {
      return await task()
    } catch (error) {
      const failure = this.#parts.errors.ofCall(error)
      if (failure instanceof IndeterminateError) this.#requests.answerLost()
      throw failure
    }
  }
}
