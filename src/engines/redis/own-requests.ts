import type { Timer } from '../../base/clock.js'
import type {
  Enqueue,
  ExtendOrYield,
  Listener,
  LockRequest,
  Operation,
  RequestStatus,
} from '../../engine/contract.js'
import { CLAIM_WINDOW } from '../../engine/wait-times.js'
import { LateRequests } from '../../engine/kit/late-requests.js'
import type { ServerOperation } from './call.js'
import type { EngineParts } from './engine-parts.js'
import type { Group } from './names.js'

/**
 * How long a grant counts as uncontended while no message arrives, in milliseconds. It is short, because a message may
 * be lost.
 */
const ALONE_FOR = 20
/** How long this process remembers a request after its lease, in milliseconds. */
const REMEMBERED = 5000
/** Minimum number of remembered requests before expired ones are forgotten. */
const MIN_SWEPT = 1024
/** Delay after a lost answer until all waiters check in, in milliseconds. */
const LOST_PAUSE = 100

/**
 * How often waiters check in while the subscription is under way, so that none misses its reservation, in milliseconds.
 */
const CHECK_IN_UNSUBSCRIBED = CLAIM_WINDOW / 2

/** The words of messages that the listener receives. */
const HINTS = ['wake', 'lost', 'contended', 'reserved'] as const

/** The known state of a request of this session. */
interface Own {
  readonly request: LockRequest
  /** Milliseconds. */
  lease: number
  /** Whether it is in a queue, as far as is known. */
  isWaiting: boolean
  /** When it has certainly ended on the server: clock time. */
  until: number
  /** Ends the time for which its grant counts as uncontended; null if this session was not subscribed. */
  alone?: Timer | null
}

/** The requests of this session that may be on the server, and the messages about them. */
export class OwnRequests {
  readonly #parts: EngineParts
  /** The requests that wait for a message that a foreign client has freed their key, by channel. */
  readonly #freed = new Map<string, Set<string>>()
  readonly #late: LateRequests
  readonly #own = new Map<string, Own>()
  #sweepAt = MIN_SWEPT
  /**
   * The channels with messages about these requests, and the state of their subscriptions. One that is under way takes
   * several round trips.
   */
  readonly #channels = new Map<string, 'under way' | 'failed' | 'subscribed'>()
  #session = ''
  #listener: Listener | undefined
  /** Lets all waiters check in after a lost answer. */
  #afterLoss: Timer | undefined

  constructor(parts: EngineParts, cancel: (request: LockRequest) => Promise<unknown>) {
    this.#parts = parts
    this.#late = new LateRequests({ clock: parts.clock, isOwn: id => this.#own.has(id), cancel })
  }

  begin(session: string, listener: Listener): void {
    this.#session = session
    this.#listener = listener
  }

  /** Ends the session. @returns the requests that may still be on the server. */
  end(): LockRequest[] {
    this.#listener = undefined
    this.#afterLoss?.cancel()
    this.#late.end()
    const now = this.#parts.clock.now()
    // mutant: end-forgets-requests
    return [...this.#own.values()].filter(({ until }) => until > now).map(({ request }) => request)
  }

  /** Called before an operation is sent. */
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

  /** Called after an operation was executed. @returns the outcome for its caller. */
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

  /** Subscribes to messages about requests. Then lets all waiters check in, because earlier messages were missed. */
  async listen(group: Group): Promise<void> {
    const channel = group.channels + this.#session
    if (this.#channels.get(channel) === 'subscribed') return
    this.#channels.set(channel, 'under way')
    try {
      await this.#parts.link.subscribe(channel)
    } catch (error) {
      this.#channels.set(channel, 'failed')
      throw error
    }
    if (this.#channels.get(channel) === 'subscribed') return
    this.#channels.set(channel, 'subscribed')
    // mutant: hints-before-subscription-lost
    this.lookAtAll()
  }

  /** Handles a message. @returns whether it is about requests. */
  message(channel: string, text: string): boolean {
    if (this.#channels.has(channel)) {
      this.hint(text)
      return true
    }
    const freed = this.#freed.get(channel)
    for (const id of [...(freed ?? [])]) this.#listener?.wake(id)
    return freed !== undefined
  }

  /** Handles a message from the code to a session: a word, and the ID or key that it is about. */
  hint(text: string): void {
    const space = text.indexOf(' ')
    const [word, about] = [text.slice(0, space), text.slice(space + 1)]
    const hint = HINTS.find(each => each === word)
    if (hint) this.#listener?.[hint](about)
    else if (word === 'foreign') this.#followFreed(about, true)
  }

  /**
   * Called when an answer was lost. Only the answer reports changes to other requests of the same session, so all
   * waiters check in, and again until they get an answer.
   */
  answerLost(): void {
    if (!this.#listener) return
    const look = (): void => {
      this.#afterLoss = undefined
      this.lookAtAll()
    }
    this.#afterLoss ??= this.#parts.clock.after(LOST_PAUSE, look, false)
  }

  /** Called when the operation may be executed later, or may have been executed. */
  operationLost(operation: Enqueue | ExtendOrYield): void {
    if (this.#listener) this.#late.lost(operation)
  }

  /** Lets every waiter check in. */
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

  /** Records the status of a request. @returns the status for its caller */
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
    // If the subscription fails, a waiter still checks in by itself, and the next waiter tries to subscribe again.
    this.listen(group).catch(() => undefined)
    if (this.#channels.get(group.channels + this.#session) !== 'under way') return status
    return { ...status, checkInAfter: Math.min(status.checkInAfter, CHECK_IN_UNSUBSCRIBED) }
  }

  /** Whether this session is notified when another request begins to wait for an uncontended grant. */
  #isNotifiedOfOthers(group: Group, id: string): boolean {
    const own = this.#own.get(id)
    if (!own) return false
    const { alone } = own
    alone?.cancel()
    if (this.#channels.get(group.channels + this.#session) === 'subscribed') {
      own.alone = this.#parts.clock.after(ALONE_FOR, () => this.#listener?.contended(id), false)
      return true
    }
    // Only once for each request, because it may not be allowed.
    if (alone === undefined) this.listen(group).catch(() => undefined)
    own.alone = null
    return false
  }

  #forget(id: string): void {
    this.#own.get(id)?.alone?.cancel()
    this.#followFreed(id, false)
    this.#own.delete(id)
  }

  /**
   * Subscribes to, or unsubscribes from, the messages of foreign clients that free the keys of this request, while it is
   * the first waiter behind such a client.
   */
  #followFreed(id: string, isWanted: boolean): void {
    const { layout, link, names } = this.#parts
    const own = this.#own.get(id)
    if (!layout.freed || !own) return
    for (const { key } of own.request.claims) {
      const channel = layout.freed(names.held(key))
      const waiting = this.#freed.get(channel)
      if (isWanted && waiting) waiting.add(id)
      else if (isWanted) {
        this.#freed.set(channel, new Set([id]))
        // The waiter checks in even without a message.
        link.subscribe(channel).catch(() => undefined)
      } else if (waiting?.delete(id) && waiting.size === 0) {
        this.#freed.delete(channel)
        link.unsubscribe(channel).catch(() => undefined)
      }
    }
  }
}
