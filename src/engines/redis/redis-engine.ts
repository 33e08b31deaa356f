import type { Clock, Timer } from '../../clock.js'
import {
  ClosedError,
  IndeterminateError,
  InvalidArgumentError,
  SignalboxError,
  UnavailableError,
} from '../../errors.js'
import type { Guarantees } from '../../guarantees.js'
import type { Reserve } from '../../limits/rules/reserve.js'
import type { Claim } from '../../engine/claim.js'
import type {
  Engine,
  ForceRelease,
  Inspect,
  Listener,
  LockRequest,
  SessionInfo,
  Operation,
  OutcomeOf,
  RequestReport,
  Reservation,
  Revoke,
  RequestStatus,
} from '../../engine/contract.js'
import type { Ballot } from './ballot.js'
import {
  CallArguments,
  failureIn,
  OperationFailure,
  outcomeOf,
  reportsOf,
  type Caller,
  type Carried,
  type ScriptReport,
} from './call.js'
import { enterOnce } from './clients/enter-once.js'
import type { Reply } from './clients/command-line.js'
import { RedisReplyError, type Answered, type LinkListener, type RedisLink } from './clients/redis-link.js'
import { FreedChannels } from './freed-channels.js'
import { redisGuarantees } from './guarantees.js'
import { HeldText, heldText, memberText, sessionOf, whoIs } from './held-text.js'
import { HELD_LAYOUTS, type HeldLayout } from './held-layout.js'
import { RedisLimits } from './limits.js'
import { Names, type Group } from './names.js'
import { Replicas, type Missed } from './replicas.js'

/** A request as `inspect` shows it, with what tells it from all others. */
export interface IdentifiedReport extends RequestReport {
  readonly id: string
  /** Its place among those who wait for the key: the lesser text comes first. */
  readonly order: string
}

/** How the Redis engine is used. */
export interface RedisEngineOptions {
  /** Comes before the name of everything that is kept in Redis. */
  readonly prefix: string
  /** So many replicas must have a grant, a renewal or a commit before it counts; 0 for none. */
  readonly minReplicas: number
  /** What held keys look like. */
  readonly layout: keyof typeof HELD_LAYOUTS
}

/** Makes the connection of an engine to its server or servers. */
export type LinkMaker = (listener: LinkListener) => RedisLink

/**
 * One call carries so many operations at the most; what more a tick brings follows in the next. So the server is kept from
 * others for a moment only, and works on one call while this process goes on with what another has brought: with all in one,
 * each of the two would wait for the other.
 */
const MOST_OPERATIONS = 16
/** Nobody else waits, as far as messages tell, for so long at the most, because one may be lost: milliseconds. */
const ALONE_FOR = 20
/** How long a request outlives its lease in this process's memory: milliseconds. */
const REMEMBERED = 5000
/** So many requests at least come between two looks for those that can be forgotten. */
const LEAST_SWEPT = 1024
/** The pause after an answer was lost until all who wait look: milliseconds. */
const UNHEARD_PAUSE = 100
const SCAN_COUNT = '1000'

/** A request of this session: the engine is told its claims once and has to name their keys in every call. */
interface OwnRequest {
  readonly request: LockRequest
  claims: readonly Claim[]
  readonly group: Group
  lease: number
  /** Whether it stands in a queue, as far as is known. */
  waiting: boolean
  /** From when on it can't be there any more: clock time. */
  until: number
  /** Ends the time for which it can be vouched for that nobody else waits; null when it could not be. */
  alone?: Timer | null
}

/** An operation on its way, with who waits for its outcome. */
interface Pending extends Carried {
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: Error) => void
}

/** The calls of one group. */
interface Lane {
  readonly group: Group
  pending: Pending[]
  scheduled: boolean
  /** How many calls are under way. */
  inFlight: number
}

/** The lock table as a script inside Redis: all processes that reach the same server or cluster. */
export class RedisEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly tellsWanted = false
  readonly #link: RedisLink
  readonly #clock: Clock
  /** Nothing, where nothing is asked of replicas. */
  readonly #replicas: Replicas | undefined
  readonly #layout: HeldLayout
  readonly #names: Names
  readonly #lanes = new Map<string, Lane>()
  readonly #own = new Map<string, OwnRequest>()
  #sweepAt = LEAST_SWEPT
  /** The channels that wake-ups come on, with when they began, or begin, to be heard. */
  readonly #channels = new Map<string, Promise<void>>()
  /** Those on which messages about own requests come. */
  readonly #listening = new Set<string>()
  readonly #freed: FreedChannels
  readonly #limits: RedisLimits
  #member: SessionInfo | undefined
  #caller: Caller = { session: '', memberText: '' }
  #listener: Listener | undefined
  /** Settles when the script is there again after a server had lost it; calls wait for that to keep their order. */
  #loading: Promise<void> | undefined
  /** Makes good what an answer that was lost had to tell. */
  #unheard: Timer | undefined

  constructor(makeLink: LinkMaker, options: RedisEngineOptions, clock: Clock) {
    this.#link = makeLink({
      message: (channel, text) => this.#heard(channel, text),
      resubscribed: () => {
        this.#lookAtAll()
        this.#listener?.missed()
      },
    })
    this.#freed = new FreedChannels(this.#link)
    this.#limits = new RedisLimits(this.#link, clock)
    this.#replicas = options.minReplicas > 0 ? new Replicas(options.minReplicas) : undefined
    this.#clock = clock
    this.#layout = HELD_LAYOUTS[options.layout]
    this.#names = new Names(options.prefix, this.#link.cluster, this.#layout.beside)
    this.name = this.#link.name
    this.guarantees = redisGuarantees(this.#link.cluster)
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    await this.#link.connect()
    this.#member = member
    this.#caller = { session: member.session, memberText: memberText(member) }
    this.#listener = listener
  }

  /** @param ballot makes an enqueue, a claim or a renewal a vote. */
  submit<O extends Operation>(operation: O, ballot?: Ballot): Promise<OutcomeOf<O>>
  submit(operation: Operation, ballot?: Ballot): Promise<unknown> {
    if (!this.#member) return Promise.reject(new ClosedError('the box was closed', { engine: this.name }))
    switch (operation.type) {
      case 'enqueue':
        return this.#enqueue(operation, ballot)
      case 'expire':
        return this.#expire(operation.keys)
      case 'read':
      case 'commit':
        return this.#store(operation)
      case 'watch':
        return this.#attempt(() => this.#link.subscribe(this.#names.value(operation.key)))
      case 'unwatch':
        return this.#attempt(() => this.#link.unsubscribe(this.#names.value(operation.key)))
      case 'inspect':
        return this.#inspect(operation)
      case 'forceRelease':
        return this.#attempt(() => this.#forceRelease(operation))
      case 'revoke':
        return this.#attempt(() => this.#revoke(operation))
      default:
        return this.#ofOwn(operation, ballot)
    }
  }

  async reserve(request: Reserve): Promise<Reservation> {
    if (!this.#member) throw new ClosedError('the box was closed', { engine: this.name })
    const name = this.#names.limit(request.limiter)
    return this.#attempt(async () => {
      try {
        return await this.#limits.reserve(name, request)
      } catch (cause) {
        if (!isScriptFailure(cause)) throw cause
        // Without the length that keeps names and keys apart.
        const key = request.limiter.replace(/^\d+:/, '')
        // It reads before it writes.
        throw new UnavailableError(`the limit ${key} can't be read: another program has written to ${name}`, {
          engine: this.name,
          key,
          cause,
        })
      }
    })
  }

  /**
   * All requests for keys that begin with `prefix`, with their ids, each key's in order: those with a record from their
   * groups, and grants that are known by their held keys only. Rejects as {@link submit} does.
   */
  async reports(prefix: string): Promise<readonly IdentifiedReport[]> {
    return this.#attempt(() => this.#allReports(prefix))
  }

  /** Hears hints from when the promise settles, before anything waits. Rejects as {@link submit} does. */
  async listen(): Promise<void> {
    await this.#attempt(() => this.#listen(this.#names.group('')))
  }

  /** Makes all numbers from now on greater than `least`. Rejects as {@link submit} does. */
  async raise(least: number): Promise<void> {
    const group = this.#names.group('')
    const call = this.#arguments(group, 1)
    call.addRaise(least)
    await this.#attempt(() => this.#evaluate(group, call))
  }

  /** Whether keys lie in many hash slots. */
  get cluster(): boolean {
    return this.#link.cluster
  }

  /** The hash slot of a key on Cluster, as a text by which slots are compared; the same for all keys elsewhere. */
  slotOf(key: string): string {
    return this.#names.group(key).numbers
  }

  async leave(): Promise<void> {
    // One that is still joining has nothing to give back, and its connections end here, too.
    if (this.#member) await this.#giveAllBack()
    await this.#link.close()
  }

  /** Takes out all requests that may be there. What can't be given back now ends with its lease. */
  async #giveAllBack(): Promise<void> {
    const now = this.#clock.now()
    const live = [...this.#own.values()].filter(({ until }) => until > now)
    const cancelled = live.map(({ request }) => this.submit({ type: 'cancel', request }))
    this.#member = undefined
    this.#unheard?.cancel()
    await Promise.allSettled(cancelled)
  }

  #enqueue(operation: Operation & { type: 'enqueue' }, ballot: Ballot | undefined): Promise<unknown> {
    const { request, lease } = operation
    const { id, claims, label } = request
    const taken = claims.find(({ key }) => this.#names.isTaken(key))
    if (taken) return Promise.reject(this.#isOwn(taken.key))
    const group = this.#groupOf(claims.map(({ key }) => key))
    this.#remember(id, { request, claims, group, lease, waiting: false, until: 0 })
    return this.#send(group, operation, claims, this.#details(label, claims), ballot)
  }

  /** What is about a request of this session; one that nobody remembers is there no more. */
  #ofOwn(operation: Operation & { request: LockRequest }, ballot: Ballot | undefined): Promise<unknown> {
    const own = this.#own.get(operation.request.id)
    if (!own) return Promise.resolve(outcomeOf(operation, GONE[operation.type]!))
    own.until = this.#clock.now() + own.lease + REMEMBERED
    if (operation.type === 'extendOrYield') {
      const { next, lease } = operation
      this.#remember(next.id, { ...own, request: next, lease, waiting: false, until: 0 })
      return this.#send(own.group, operation, own.claims, this.#details(next.label, own.claims))
    }
    const { claims } = own
    const outcome = this.#send(own.group, operation, claims, '', ballot)
    if (operation.type === 'downgrade') {
      // What is asked of it from here on comes after that.
      own.claims = claims.map(({ key }) => ({ key, mode: 'shared' }))
      outcome.catch((error: unknown) => {
        if (error instanceof UnavailableError) own.claims = claims
      })
    }
    return outcome
  }

  /** What a held key tells beside the words that every call carries; mostly nothing. */
  #details(label: string | undefined, claims: readonly Claim[]): string {
    return label === undefined && claims.length === 1 ? '' : heldText(this.#member!, label, claims)
  }

  #remember(id: string, request: OwnRequest): void {
    request.until = this.#clock.now() + request.lease + REMEMBERED
    this.#own.set(id, request)
    if (this.#own.size < this.#sweepAt) return
    const now = this.#clock.now()
    for (const [other, { until }] of this.#own) if (until < now) this.#forget(other)
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#own.size)
  }

  async #expire(keys: readonly string[]): Promise<undefined> {
    const byGroup = new Map<Group, string[]>()
    for (const key of keys) {
      const group = this.#names.group(key)
      const others = byGroup.get(group)
      if (others) others.push(key)
      else byGroup.set(group, [key])
    }
    await Promise.all(
      [...byGroup].map(([group, together]) => this.#send(group, { type: 'expire', keys: together }, [], '')),
    )
    return undefined
  }

  #store(operation: Operation & { type: 'read' | 'commit' }): Promise<unknown> {
    const keys =
      operation.type === 'read'
        ? [...operation.keys, ...operation.ids.map(({ key }) => key)]
        : [...operation.expect, ...operation.writes, ...operation.record].map(({ key }) => key)
    const guard = operation.type === 'commit' ? operation.guard : undefined
    const own = guard && this.#own.get(guard.request.id)
    // A guard that nobody remembers holds nothing, and the script finds that by a request that is not there.
    const claims =
      own?.claims ?? (guard ? keys.slice(0, 1).map(key => ({ key, mode: 'exclusive' as const })) : [])
    return this.#send(this.#groupOf([...keys, ...claims.map(({ key }) => key)]), operation, claims, '')
  }

  #groupOf(keys: readonly string[]): Group {
    return this.#names.group(keys[0]!)
  }

  #send(
    group: Group,
    operation: Operation,
    claims: readonly Claim[],
    details: string,
    ballot?: Ballot,
  ): Promise<unknown> {
    let lane = this.#lanes.get(group.numbers)
    if (!lane) {
      lane = { group, pending: [], scheduled: false, inFlight: 0 }
      this.#lanes.set(group.numbers, lane)
    }
    const { pending } = lane
    this.#schedule(lane)
    return new Promise((resolve, reject) =>
      pending.push({ operation, claims, details, ballot, resolve, reject }),
    )
  }

  /**
   * Sends what has come together: at the end of this turn of tasks where nothing is under way, so that a lone caller
   * loses no time; else after all that this tick brings.
   */
  #schedule(lane: Lane): void {
    if (lane.scheduled) return
    lane.scheduled = true
    const flush = (): void => this.#flush(lane)
    if (this.#loading) void this.#loading.then(flush)
    else if (lane.inFlight === 0) queueMicrotask(flush)
    else setImmediate(flush)
  }

  #flush(lane: Lane): void {
    lane.scheduled = false
    const batch = lane.pending.splice(0, MOST_OPERATIONS)
    void this.#call(lane, batch)
    if (lane.pending.length > 0) this.#schedule(lane)
  }

  async #call(lane: Lane, batch: readonly Pending[]): Promise<void> {
    const { epoch } = this.#link
    const call = this.#arguments(lane.group, batch.length)
    for (const carried of batch) call.add(carried)
    lane.inFlight++
    try {
      const answered = await this.#evaluate(lane.group, call)
      const answers = answersIn(answered.reply)
      const hasToLast = ({ operation }: Pending, index: number): boolean =>
        matters(operation, answers[index]!)
      const missed =
        this.#replicas && batch.some(hasToLast) ? await this.#replicas.missed(answered) : undefined
      // A client package may send a call again over a new connection; what it then finds gone, it may have done itself.
      const twice = this.#link.epoch !== epoch
      if (twice) this.#lookSoon()
      for (let index = 0; index < batch.length; index++) {
        const { operation, resolve, reject } = batch[index]!
        const outcome = outcomeOf(operation, answers[index]!)
        if (outcome instanceof OperationFailure)
          reject(this.#refused(operation.type, this.#titleOf(operation), outcome))
        else if (twice && isDoubtful(operation, outcome)) reject(this.#unclear(operation))
        else {
          const unsafe =
            missed && hasToLast(batch[index]!, index) ? this.#unsafe(operation, missed) : undefined
          // The server has done it all the same.
          const settled = this.#settle(lane.group, operation, outcome)
          if (unsafe) reject(unsafe)
          else resolve(settled)
        }
      }
      this.#hintAll(answers[batch.length])
    } catch (error) {
      const failure = this.#failure(error)
      for (const { reject } of batch) reject(failure)
    } finally {
      lane.inFlight--
      if (lane.inFlight === 0 && lane.pending.length === 0 && this.#link.cluster) {
        this.#lanes.delete(lane.group.numbers)
      }
    }
  }

  /** @param count how many operations are going to be added. */
  #arguments(group: Group, count: number): CallArguments {
    return new CallArguments(this.#names, group, this.#caller, count)
  }

  /** Carries out the one operation of a call. */
  async #evaluateOne(group: Group, call: CallArguments, type: string): Promise<Reply> {
    const [answer, hints] = answersIn((await this.#evaluate(group, call)).reply)
    const failure = failureIn(answer!)
    if (failure) throw this.#refused(type, undefined, failure)
    this.#hintAll(hints)
    return answer!
  }

  async #evaluate(group: Group, call: CallArguments): Promise<Answered> {
    try {
      return await this.#link.call(group.numbers, call.command('EVALSHA', this.#layout.sha))
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT') throw error
    }
    // Calls that were under way with this one come back the same way, in their order; later ones wait for them.
    const evaluated = this.#link.call(group.numbers, call.command('EVAL', this.#layout.script))
    const loaded = evaluated.then(
      () => undefined,
      () => undefined,
    )
    this.#loading = loaded
    void loaded.then(() => {
      if (this.#loading === loaded) this.#loading = undefined
    })
    return evaluated
  }

  #unsafe(operation: Operation, { why, cause }: Missed): Error {
    const key = this.#titleOf(operation)
    return new IndeterminateError(`${this.name} has done it for ${String(key)}, but ${why}`, {
      engine: this.name,
      key,
      cause,
    })
  }

  /** Keeps in mind what became of a request of this session. */
  #settle(group: Group, operation: Operation, outcome: unknown): unknown {
    switch (operation.type) {
      case 'enqueue':
      case 'poll':
        this.#stands(group, operation.request.id, outcome as RequestStatus)
        break
      case 'extendOrYield': {
        const standing = outcome as RequestStatus
        const kept = standing.state === 'held' && standing.id === operation.request.id
        this.#forget(kept ? operation.next.id : operation.request.id)
        if (!kept) {
          this.#stands(group, operation.next.id, standing)
          break
        }
        const own = this.#own.get(operation.request.id)!
        own.lease = operation.lease
        return standing.isAlone && !this.#vouches(group, operation.request.id, own)
          ? { ...standing, isAlone: false }
          : standing
      }
      case 'renew':
        if (outcome === false) break
        this.#own.get(operation.request.id)!.lease = operation.lease
        break
      case 'cancel':
      case 'release':
        this.#forget(operation.request.id)
        break
      case 'commit':
        if (operation.guard && operation.release && (outcome as { state: string }).state === 'committed') {
          this.#forget(operation.guard.request.id)
        }
        break
      default:
    }
    return outcome
  }

  /** Whether this session hears of whoever comes to wait for a grant that is alone. */
  #vouches(group: Group, id: string, own: OwnRequest): boolean {
    const { alone } = own
    alone?.cancel()
    if (!this.#listening.has(this.#channelOf(group))) {
      // Once a request, because it may not be allowed.
      if (alone === undefined) void this.#listen(group)
      own.alone = null
      return false
    }
    own.alone = this.#clock.after(ALONE_FOR, () => this.#listener?.wanted(id), false)
    return true
  }

  #stands(group: Group, id: string, standing: RequestStatus): void {
    if (standing.state !== 'held' && standing.state !== 'queued') return this.#forget(id)
    const own = this.#own.get(id)
    if (!own) return
    own.waiting = standing.state === 'queued'
    if (own.waiting) void this.#listen(group)
    else this.#hearFreed(id, own, false)
  }

  #forget(id: string): void {
    const own = this.#own.get(id)
    if (!own) return
    own.alone?.cancel()
    this.#own.delete(id)
    this.#hearFreed(id, own, false)
  }

  /** Hears, or hears no longer, foreign clients tell that what this request waits for is free. */
  #hearFreed(id: string, { claims }: OwnRequest, wanted: boolean): void {
    const { freed } = this.#layout
    if (!freed) return
    for (const { key } of claims) {
      const channel = freed(this.#names.held(key))
      if (wanted) this.#freed.add(channel, id)
      else this.#freed.remove(channel, id)
    }
  }

  /** Where messages about own requests come. */
  #channelOf(group: Group): string {
    return group.channels + this.#caller.session
  }

  /** Hears wake-ups from now on. Those that came before are made good by a look at every request that waits. */
  #listen(group: Group): Promise<void> {
    const channel = this.#channelOf(group)
    // Where that fails, whoever waits looks again by itself, and the next that has to wait tries again to be heard.
    return enterOnce(this.#channels, channel, () =>
      this.#link.subscribe(channel).then(() => {
        this.#listening.add(channel)
        this.#lookAtAll()
      }),
    )
  }

  /**
   * What a call does for requests of this very session is told with its answer and nowhere else. Where that is lost, those
   * who wait look where they stand, and again until they are answered.
   */
  #lookSoon(): void {
    this.#unheard ??= this.#clock.after(
      UNHEARD_PAUSE,
      () => {
        this.#unheard = undefined
        this.#lookAtAll()
      },
      false,
    )
  }

  #lookAtAll(): void {
    for (const [id, { waiting }] of [...this.#own]) if (waiting) this.#listener?.wake(id)
  }

  #heard(channel: string, text: string): void {
    if (!this.#member) return
    if (this.#channels.has(channel)) return this.#hint(text)
    const freed = this.#freed.waiting(channel)
    if (freed) for (const id of freed) this.#listener?.wake(id)
    else this.#listener?.changed(this.#names.keyOfValue(channel)!)
  }

  #hintAll(hints: Reply | undefined): void {
    if (hints) for (const hint of hints as readonly string[]) this.#hint(hint)
  }

  #hint(text: string): void {
    const space = text.indexOf(' ')
    const about = text.slice(space + 1)
    switch (text.slice(0, space)) {
      case 'wake':
        return this.#listener?.wake(about)
      case 'lost':
        return this.#listener?.lost(about)
      case 'wanted':
        return this.#listener?.wanted(about)
      case 'reserved':
        return this.#listener?.reserved(about)
      case 'foreign': {
        const own = this.#own.get(about)
        if (own) this.#hearFreed(about, own, true)
        return
      }
      default:
    }
  }

  async #inspect({ prefix }: Inspect): Promise<readonly RequestReport[]> {
    const reports = await this.reports(prefix)
    return reports.map(({ id: _, order: __, ...report }) => report)
  }

  async #allReports(prefix: string): Promise<readonly IdentifiedReport[]> {
    const reports: ScriptReport[] = []
    for (const group of await this.#groups()) reports.push(...(await this.#reports(group)))
    const recorded = new Set(
      reports.filter(({ phase }) => phase === 'held').map(({ id, key }) => `${id} ${key}`),
    )
    const light = (await this.#heldKeys(prefix)).filter(({ key, held }) => !recorded.has(`${held.id} ${key}`))
    const held = light.map(({ key, held: text, expiresIn, age }) => ({
      id: text.id,
      order: '',
      key,
      ...whoIs(text.id, text.details),
      claim: { key, mode: 'exclusive' as const },
      phase: 'held' as const,
      number: text.number,
      age,
      expiresIn,
    }))
    const others = reports
      .filter(({ key }) => key.startsWith(prefix))
      .map(({ details, ...report }) => ({ ...report, ...whoIs(report.id, details) }))
    return [...held, ...others].sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  async #reports(group: Group): Promise<ScriptReport[]> {
    const call = this.#arguments(group, 1)
    call.add({ operation: { type: 'inspect', prefix: '' }, claims: [], details: '' })
    return reportsOf(await this.#evaluateOne(group, call, 'inspect'))
  }

  /** The groups in which there are queues. */
  async #groups(): Promise<Group[]> {
    const names = await this.#scan(this.#names.requestsPattern, 'hash')
    return names.map(name => this.#names.groupOfRequests(name))
  }

  /** The keys held by exclusive grants of Signalbox. */
  async #heldKeys(start: string): Promise<HeldKey[]> {
    const [seconds, micros] = (await this.#link.command('', ['TIME'])) as readonly string[]
    const now = Number(seconds) * 1000 + Number(micros) / 1000
    const names = await this.#scan(this.#names.heldPattern(start), this.#layout.type)
    const found = await Promise.all(
      names.map(async (name): Promise<HeldKey[]> => {
        const key = this.#names.keyOfHeld(name)
        if (key === undefined) return []
        const [held, left] = await Promise.all([
          this.#heldText(name),
          this.#link.command(name, ['PTTL', name]),
        ])
        if (!held || Number(left) <= 0) return []
        return [{ key, held, expiresIn: Number(left), age: Math.max(0, now - held.since) }]
      }),
    )
    return found.flat()
  }

  /** What a held key says, if an exclusive grant of Signalbox holds it. */
  async #heldText(name: string): Promise<HeldText | undefined> {
    const text = await this.#link.command(name, this.#layout.reading(name))
    return typeof text === 'string' ? HeldText.of(text) : undefined
  }

  async #scan(pattern: string, type: string): Promise<string[]> {
    const names = new Set<string>()
    for (const master of await this.#link.masters()) {
      let cursor = '0'
      do {
        const answer = await master(['SCAN', cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT, 'TYPE', type])
        const [next, page] = answer as readonly [string, readonly string[]]
        cursor = next
        for (const name of page) names.add(name)
      } while (cursor !== '0')
    }
    return [...names]
  }

  async #forceRelease({ key, number }: ForceRelease): Promise<boolean> {
    const held = await this.#heldText(this.#names.held(key))
    const group = this.#names.group(key)
    if (held) {
      if (held.number !== number) return false
      const keys = held.keys ?? [key]
      return this.#take(
        group,
        held.id,
        number,
        keys.map(each => ({ key: each, mode: 'exclusive' })),
      )
    }
    const reports = await this.#reports(group)
    const one = reports.find(
      report => report.key === key && report.phase === 'held' && report.number === number,
    )
    if (!one) return false
    return this.#take(
      group,
      one.id,
      number,
      reports.filter(({ id }) => id === one.id).map(({ claim }) => claim),
    )
  }

  async #take(group: Group, id: string, number: number, claims: readonly Claim[]): Promise<boolean> {
    const call = this.#arguments(group, 1)
    call.addTake(id, number, claims)
    return (await this.#evaluateOne(group, call, 'take')) === 1
  }

  async #revoke({ session }: Revoke): Promise<number> {
    const byId = new Map<string, Claim[]>()
    const add = (id: string, claim: Claim): void => {
      if (sessionOf(id) !== session) return
      const claims = byId.get(id)
      if (!claims) byId.set(id, [claim])
      else if (!claims.some(({ key }) => key === claim.key)) claims.push(claim)
    }
    for (const group of await this.#groups()) {
      for (const { id, claim } of await this.#reports(group)) add(id, claim)
    }
    for (const { key, held } of await this.#heldKeys('')) add(held.id, { key, mode: 'exclusive' })
    await Promise.all(
      [...byId].map(([id, claims]) => this.#take(this.#groupOf(claims.map(({ key }) => key)), id, 0, claims)),
    )
    return byId.size
  }

  async #attempt<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): Error {
    const failure = this.#failureOf(error)
    if (failure instanceof IndeterminateError) this.#lookSoon()
    return failure
  }

  #failureOf(error: unknown): Error {
    if (error instanceof SignalboxError) return error
    const context = { engine: this.name, cause: error }
    if (error instanceof RedisReplyError) {
      const text = `${this.name} refuses: ${error.message}`
      return REFUSALS.has(error.code) || /SCRIPT KILL/.test(error.message)
        ? new UnavailableError(text, context)
        : new IndeterminateError(text, context)
    }
    return new IndeterminateError(`${this.name} failed in a way it should not: ${String(error)}`, context)
  }

  #refused(type: string, title: string | undefined, { message, unreadable }: OperationFailure): Error {
    if (unreadable !== undefined) return this.#unreadable(unreadable, title)
    const reason = message.startsWith('WRONGTYPE')
      ? `another program keeps something else than ${this.#layout.noun} there`
      : message
    return new UnavailableError(`${type} was refused by ${this.name}: ${reason}`, {
      engine: this.name,
      key: title,
      cause: new RedisReplyError(message),
    })
  }

  #isOwn(key: string): Error {
    const text = `${this.#names.held(key)} is a name for what Signalbox keeps beside locks, so no lock can be called ${key}`
    return new InvalidArgumentError(text, { engine: this.name, key })
  }

  #unreadable(name: string, title: string | undefined): Error {
    const value = this.#names.keyOfValue(name)
    const ids = this.#names.keyOfIds(name)
    const what =
      value !== undefined
        ? `the value of ${value}`
        : ids !== undefined
          ? `the ids recorded with ${ids}`
          : 'the lock table'
    return new UnavailableError(`${what} can't be read: another program has written to ${name}`, {
      engine: this.name,
      key: value ?? ids ?? title,
    })
  }

  /** The keys that an operation is about, as errors name them. */
  #titleOf(operation: Operation): string | undefined {
    const keys = this.#keysOf(operation)
    return keys && [...new Set(keys)].join(', ')
  }

  #keysOf(operation: Operation): readonly string[] | undefined {
    switch (operation.type) {
      case 'read':
      case 'expire':
        return operation.keys
      case 'commit':
        return [...operation.expect, ...operation.writes].map(({ key }) => key)
      default:
        return 'request' in operation ? operation.request.claims.map(({ key }) => key) : undefined
    }
  }

  #unclear(operation: Operation): Error {
    return new IndeterminateError(
      `${operation.type} may have been carried out twice, because the connection to ${this.name} broke meanwhile`,
      { engine: this.name },
    )
  }
}

/** A key that is held by an exclusive grant. */
interface HeldKey {
  readonly key: string
  readonly held: HeldText
  readonly expiresIn: number
  readonly age: number
}

/** What is said of a request that is not there any more. */
const GONE: Readonly<Partial<Record<Operation['type'], Reply>>> = {
  poll: ['gone'],
  extendOrYield: ['gone'],
  cancel: 0,
  renew: 0,
  release: 0,
  downgrade: 0,
}

/** Whether a script met what it does not know how to read. */
function isScriptFailure(error: unknown): boolean {
  if (!(error instanceof RedisReplyError)) return false
  const { code, message } = error
  return (
    code === 'WRONGTYPE' || (code === 'ERR' && /user_script/.test(message) && !/SCRIPT KILL/.test(message))
  )
}

/** One item an operation, and last the hints. A number alone is the answer to the only one, without hints. */
function answersIn(reply: Reply): readonly Reply[] {
  return typeof reply === 'object' ? (reply as readonly Reply[]) : [reply]
}

/** With these the server says that it has not run the call at all. */
const REFUSALS: ReadonlySet<string> = new Set([
  'NOSCRIPT',
  'LOADING',
  'BUSY',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'CROSSSLOT',
  'NOAUTH',
  'NOPERM',
  'WRONGPASS',
  'MOVED',
  'ASK',
])

/** Whether it must not be lost with the server: a lease that was set, or a commit. */
function matters({ type }: Operation, answer: Reply): boolean {
  if (typeof answer === 'number') return answer > 0 && SET_A_LEASE.has(type)
  if (type !== 'commit') return isHeld(answer)
  // What was committed before may have failed for want of replicas, and is then sent again.
  const [state] = answer as readonly Reply[]
  return state === 'committed' || state === 'repeated'
}

/** They are answered with a number other than 0 when they have. */
const SET_A_LEASE: ReadonlySet<string> = new Set<Operation['type']>(['enqueue', 'poll', 'renew', 'downgrade'])

function isHeld(answer: Reply): boolean {
  return Array.isArray(answer) && (answer[0] === 'held' || answer[0] === 'kept')
}

/** Whether the outcome is what a second execution of the same operation finds after the first. */
function isDoubtful({ type }: Operation, outcome: unknown): boolean {
  if (type === 'release' || type === 'renew' || type === 'downgrade') return outcome === false
  if (type === 'extendOrYield') return (outcome as RequestStatus).state === 'gone'
  return type === 'commit' && (outcome as { state: string }).state !== 'committed'
}
