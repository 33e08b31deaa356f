import type { Clock, Timer } from '../../base/clock.js'
import {
  CLAIM_WINDOW,
  type Enqueue,
  type ExtendOrYield,
  type Listener,
  type LockRequest,
  type Operation,
  type RequestStatus,
} from '../../engine/contract.js'
import { LateRequests } from '../../engine/kit/late-requests.js'
import type { ServerOperation } from './call.js'
import type { RedisLink } from './clients/redis-link.js'
import { FreedChannels } from './freed-channels.js'
import type { HeldLayout } from './held-layout.js'
import type { Group, Names } from './names.js'

/**
 * Maximum time for which missing messages are taken to mean that no other request waits, in milliseconds: one may be
 * lost.
 */
const ALONE_FOR = 20
/** How long a request outlives its lease in this process's memory, in milliseconds. */
const REMEMBERED = 5000
/** So many requests at least come between two looks for those that can be forgotten. */
const MIN_SWEPT = 1024
/** The pause after an answer was lost until all waiters look, in milliseconds. */
const LOST_PAUSE = 100

/** While a subscription is under way, waiters look this often, so that none misses its reservation, in milliseconds. */
const LOOK_UNHEARD = CLAIM_WINDOW / 2

/** What is known of a request of this session. */
interface Own {
  readonly request: LockRequest
  /** Milliseconds. */
  lease: number
  /** Whether it stands in a queue, as far as is known. */
  isWaiting: boolean
  /** From when on it can't be there any more: clock time. */
  until: number
  /** Ends the time for which no other request is known to wait; null when that could not be known. */
  alone?: Timer | null
}

/** What the requests of a session need. */
export interface OwnRequestsParts {
  readonly link: RedisLink
  readonly names: Names
  readonly layout: HeldLayout
  readonly clock: Clock
  readonly cancel: (request: LockRequest) => Promise<unknown>
}

/** The requests of this session that may be in Redis, and the messages about them. */
export class OwnRequests {
  readonly #parts: OwnRequestsParts
  readonly #freed: FreedChannels
  readonly #late: LateRequests
  readonly #own = new Map<string, Own>()
  #sweepAt = MIN_SWEPT
  /** The channels on which messages about them come, and those of them that are subscribed by now. */
  readonly #channels = new Set<string>()
  readonly #subscribed = new Set<string>()
  /** Those whose subscription is under way: several round trips to a server that is far away. */
  readonly #entering = new Set<string>()
  #session = ''
  #listener: Listener | undefined
  /** Makes up for the contents of a lost answer. */
  #afterLoss: Timer | undefined

  constructor(parts: OwnRequestsParts) {
    this.#parts = parts
    const { cancel, clock, link } = parts
    this.#freed = new FreedChannels(link)
    this.#late = new LateRequests({ clock, isOwn: id => this.#own.has(id), cancel })
  }

  begin(session: string, listener: Listener): void {
    this.#session = session
    this.#listener = listener
  }

  /** Ends the session. @returns the requests that may still be there. */
  end(): LockRequest[] {
    this.#listener = undefined
    this.#afterLoss?.cancel()
    this.#late.end()
    const now = this.#parts.clock.now()
    // mutant: end-forgets-requests
    return [...this.#own.values()].filter(({ until }) => until > now).map(({ request }) => request)
  }

  /** An operation is about to be sent. */
  sending(operation: Operation): void {
    switch (operation.type) {
      case 'enqueue':
        return this.#remember(operation.request, operation.lease)
      case 'extendOrYield':
        this.#remember(operation.next, operation.lease)
        return this.#prolong(operation.request, operation.lease)
      case 'checkIn':
      case 'renew':
        return this.#prolong(operation.request, operation.lease)
      case 'alive':
        for (const request of operation.requests) this.#prolong(request)
        return
      case 'cancel':
      case 'release':
        return this.#late.givenUp(operation.request)
      default:
    }
  }

  /** An operation was executed. @returns the outcome for its caller. */
  settled(group: Group, operation: ServerOperation, outcome: unknown): unknown {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#follow(group, operation.request.id, outcome as RequestStatus)
      case 'extendOrYield': {
        const status = outcome as RequestStatus
        const { request, next } = operation
        if (status.state !== 'held' || status.id === next.id) {
          this.#forget(request.id)
          return this.#follow(group, next.id, status)
        }
        this.#forget(next.id)
        if (status.isUncontended && !this.#isNotifiedOfOthers(group, request.id))
          return { ...status, isUncontended: false }
        break
      }
      case 'cancel':
      case 'release':
        this.#forget(operation.request.id)
        break
      case 'commit':
        if (operation.guard && operation.release && (outcome as { state: string }).state === 'committed')
          this.#forget(operation.guard.request.id)
        break
      default:
    }
    return outcome
  }

  /** Receives messages about requests from when the promise settles. A look makes up for those that came before. */
  async listen(group: Group): Promise<void> {
    const channel = group.channels + this.#session
    if (this.#subscribed.has(channel)) return
    this.#channels.add(channel)
    this.#entering.add(channel)
    await this.#parts.link.subscribe(channel).finally(() => this.#entering.delete(channel))
    if (this.#subscribed.has(channel)) return
    this.#subscribed.add(channel)
    // mutant: hints-before-subscription-lost
    this.lookAtAll()
  }

  /** Takes a message. @returns whether it is about requests. */
  message(channel: string, text: string): boolean {
    if (this.#channels.has(channel)) {
      this.hint(text)
      return true
    }
    const freed = this.#freed.waiting(channel)
    for (const id of freed ?? []) this.#listener?.wake(id)
    return freed !== undefined
  }

  /** Handles a message from the code to a session: a word, and what it is about. */
  hint(text: string): void {
    const space = text.indexOf(' ')
    const about = text.slice(space + 1)
    switch (text.slice(0, space)) {
      case 'wake':
        return this.#listener?.wake(about)
      case 'lost':
        return this.#listener?.lost(about)
      case 'contended':
        return this.#listener?.contended(about)
      case 'reserved':
        return this.#listener?.reserved(about)
      case 'foreign':
        return this.#followFreed(about, true)
      default:
    }
  }

  /**
   * What a call does for requests of this very session is reported in its answer and nowhere else. Where that is lost,
   * all waiters look where they stand, and again until they are answered.
   */
  answerLost(): void {
    if (!this.#listener) return
    const look = (): void => {
      this.#afterLoss = undefined
      this.lookAtAll()
    }
    this.#afterLoss ??= this.#parts.clock.after(LOST_PAUSE, look, false)
  }

  operationLost(operation: Enqueue | ExtendOrYield): void {
    if (this.#listener) this.#late.lost(operation)
  }

  /** Has every waiter look where it stands. */
  lookAtAll(): void {
    for (const [id, { isWaiting }] of [...this.#own]) if (isWaiting) this.#listener?.wake(id)
  }

  #remember(request: LockRequest, lease: number): void {
    this.#own.set(request.id, { request, lease, isWaiting: false, until: this.#end(lease) })
    if (this.#own.size < this.#sweepAt) return
    const now = this.#parts.clock.now()
    for (const [id, { until }] of this.#own) if (until < now) this.#forget(id)
    this.#sweepAt = Math.max(MIN_SWEPT, 2 * this.#own.size)
  }

  #prolong({ id }: LockRequest, lease?: number): void {
    const own = this.#own.get(id)
    if (!own) return
    if (lease !== undefined) own.lease = lease
    own.until = this.#end(own.lease)
  }

  #end(lease: number): number {
    return this.#parts.clock.now() + lease + REMEMBERED
  }

  /** Takes note of where a request stands. @returns the status for its caller */
  #follow(group: Group, id: string, status: RequestStatus): RequestStatus {
    const own = this.#own.get(id)
    if (!own) return status
    const { state } = status
    if (state !== 'held' && state !== 'queued') {
      this.#forget(id)
      return status
    }
    own.isWaiting = state === 'queued'
    if (state === 'held') {
      this.#followFreed(id, false)
      return status
    }
    // Where listening fails, a waiter looks again by itself, and the next one tries again to listen.
    this.listen(group).catch(() => undefined)
    if (!this.#entering.has(group.channels + this.#session)) return status
    return { ...status, checkInAfter: Math.min(status.checkInAfter, LOOK_UNHEARD) }
  }

  /** Whether this session is notified when another request begins to wait for an uncontended grant. */
  #isNotifiedOfOthers(group: Group, id: string): boolean {
    const own = this.#own.get(id)
    if (!own) return false
    const { alone } = own
    alone?.cancel()
    if (this.#subscribed.has(group.channels + this.#session)) {
      own.alone = this.#parts.clock.after(ALONE_FOR, () => this.#listener?.contended(id), false)
      return true
    }
    // Once a request, because it may not be allowed.
    if (alone === undefined) this.listen(group).catch(() => undefined)
    own.alone = null
    return false
  }

  #forget(id: string): void {
    this.#own.get(id)?.alone?.cancel()
    this.#followFreed(id, false)
    this.#own.delete(id)
  }

  /** Subscribes to, or unsubscribes from, the messages of foreign clients that free what this request waits for. */
  #followFreed(id: string, isWanted: boolean): void {
    const { layout, names } = this.#parts
    const own = this.#own.get(id)
    if (!layout.freed || !own) return
    for (const { key } of own.request.claims) {
      const channel = layout.freed(names.held(key))
      if (isWanted) this.#freed.add(channel, id)
      else this.#freed.remove(channel, id)
    }
  }
}
