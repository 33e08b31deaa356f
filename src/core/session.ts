import type {
  Awaitable,
  Cancel,
  Engine,
  Listener,
  Operation,
  OutcomeOf,
  Release,
  SessionInfo,
} from '../engine/contract.js'
import { CLAIM_WINDOW, HEARTBEAT_INTERVAL } from '../engine/wait-times.js'
import { retryUntilExpired } from '../engine/retry-until-expired.js'
import { wallOf, type Clock, type Timer } from '../base/clock.js'
import { channels, type LockEvent } from '../base/diagnostics.js'
import { boxClosed } from '../base/errors.js'
import type { ClaimSet } from './claims.js'
import { Health } from './health.js'
import { LeaseKeeper } from './lease-keeper.js'
import type { LocalGrant } from './grant.js'
import type { AcquireTerms } from './lock-options.js'
import { LocalQueue } from './local-queue.js'
import type { HintReceiver, QueueSession, WaitingQueue } from './pending-request.js'
import { SignOfLife } from './sign-of-life.js'
import { DeadlockDetector } from './deadlocks.js'
import { Watchers, type OnChange, type Watching } from './watchers.js'
import { TransientMap } from '../base/transient-map.js'

/** Idle local queues are kept for the next caller of their claim set, up to this number of queues. */
const IDLE_QUEUES = 1024
/** With more queues, idle ones are dropped after this delay, plus a delay for each queue, in milliseconds. */
const DROP_DELAY = 1000
const DROP_DELAY_EACH = 0.01

/** Claim windows that end within this time of each other are swept together, in milliseconds. */
const WINDOW_STEP = CLAIM_WINDOW / 10

const PING_LEASE = 5000

/** The engine session of a box, with its local queues, lease keeper and watchers, which receive the engine's hints. */
export class Session implements Listener, QueueSession {
  readonly id: string
  readonly keeper: LeaseKeeper
  readonly health: Health
  readonly signs: SignOfLife | undefined
  readonly deadlocks: DeadlockDetector | undefined
  /** Set once the session has ended: the box was closed, or the engine has ended it. */
  ending: Error | undefined
  readonly #over = new AbortController()
  /** Aborts when {@link ending} is set. */
  readonly over: AbortSignal = this.#over.signal
  /** Set while the box drains. Tasks that hold grants may still acquire more. */
  #draining: Error | undefined
  #queues = new Map<string, LocalQueue>()
  /** The requests that are not granted yet, by their IDs. */
  readonly #requested = new TransientMap<string, HintReceiver>()
  readonly #watchers: Watchers
  /** The keys that this box has to sweep, by the end of their claim windows. */
  readonly #toSweep = new Map<number, Set<string>>()
  #requestNumber = 0
  #dropIdleAt = IDLE_QUEUES
  #idleTimer: Timer | undefined
  /** Number of leases in use, for a close that drains. */
  #leasesInUse = 0
  #onIdle: (() => void) | undefined

  /** @param detectDeadlocks whether a task that would wait for itself gets an error. */
  constructor(
    readonly member: SessionInfo,
    readonly engine: Engine,
    readonly clock: Clock,
    detectDeadlocks: boolean,
  ) {
    this.id = member.session
    this.keeper = new LeaseKeeper(engine, clock, renewal => this.send(renewal))
    this.health = new Health({ engine: engine.name, session: this.id }, () => this.ping())
    this.signs = engine.coversBySigns ? new SignOfLife(this.id, clock, sign => this.send(sign)) : undefined
    this.deadlocks = detectDeadlocks ? new DeadlockDetector() : undefined
    this.#watchers = new Watchers(this.id, operation => this.send(operation), clock)
  }

  nextRequest(): string {
    return `${this.id}.${(++this.#requestNumber).toString(36)}`
  }

  /** The queue of all local callers with this claim set. */
  queueFor(set: ClaimSet, noun: string): LocalQueue {
    const known = this.#queues.get(set.signature)
    if (known) return known
    if (this.#queues.size >= this.#dropIdleAt) this.#dropIdleQueues()
    const queue = new LocalQueue(this, set, noun)
    this.#queues.set(set.signature, queue)
    if (this.#queues.size > IDLE_QUEUES && !this.#idleTimer) this.#dropIdleLater()
    return queue
  }

  /**
   * All local queues with waiters. A queue that was created for a single caller or batch counts only once it has sent
   * its request.
   */
  *waitingQueues(): Generator<WaitingQueue> {
    for (const queue of this.#queues.values()) if (queue.waiting) yield queue
    for (const { queue } of this.#requested.values())
      if (this.#queues.get(queue.set.signature) !== queue && queue.waiting) yield queue
  }

  expectHints(id: string, receiver: HintReceiver): void {
    this.#requested.set(id, receiver)
  }

  forgetHints(id: string): void {
    this.#requested.delete(id)
  }

  refusal(): Error | undefined {
    return this.ending ?? (this.#draining && !this.deadlocks?.inside() ? this.#draining : undefined)
  }

  /** Refuses new requests, rejects all waiters, and settles when no grant is in use. */
  drain(): Promise<void> {
    this.#draining = boxClosed(this.engine.name)
    for (const queue of [...this.waitingQueues()]) queue.failAll(this.#draining)
    return this.#leasesInUse === 0 ? Promise.resolve() : new Promise(resolve => (this.#onIdle = resolve))
  }

  leaseBegan(): void {
    this.#leasesInUse++
  }

  leaseEnded(): void {
    if (--this.#leasesInUse === 0) this.#onIdle?.()
  }

  /**
   * Acquires by a local queue on behalf of the calling task. With a wait of 0 it does not wait for others.
   * @throws DeadlockError when the task would wait for itself, BusyError, and what `LocalQueue.acquire` throws
   */
  acquire(queue: LocalQueue, request: AcquireTerms): Promise<LocalGrant> {
    // The local queue rejects a request whose signal has aborted.
    if (request.wait === 0 && !request.signal?.aborted) return this.#acquireAtOnce(queue, request)
    return isObserved()
      ? this.#published(queue, event => this.#wait(queue, request, event))
      : this.#wait(queue, request)
  }

  /** Returns the grant if it is available without waiting for another holder or waiter, else undefined. */
  attempt(queue: LocalQueue, request: AcquireTerms): Awaitable<LocalGrant | undefined> {
    return isObserved()
      ? this.#published(queue, event => queue.attempt(request, event))
      : queue.attempt(request)
  }

  async #acquireAtOnce(queue: LocalQueue, request: AcquireTerms): Promise<LocalGrant> {
    const grant = await this.attempt(queue, request)
    if (grant) return grant
    throw queue.errors.busy()
  }

  #wait(queue: LocalQueue, request: AcquireTerms, event?: LockEvent): Promise<LocalGrant> {
    const wait = (): Promise<LocalGrant> => queue.acquire(request, event)
    // A request that steals the keys waits for no holder.
    return this.deadlocks && !request.steal
      ? this.deadlocks.acquire(queue, request.reentrant ?? false, () => this.waitingQueues(), wait)
      : wait()
  }

  /** Publishes a request, and its refusal. The local queue publishes the grant. */
  async #published<G extends LocalGrant | undefined>(
    queue: LocalQueue,
    ask: (event: LockEvent) => Awaitable<G>,
  ): Promise<G> {
    const since = this.clock.now()
    const event = queue.events.requested()
    try {
      const grant = await ask(event)
      if (!grant) queue.events.refused(event, since, queue.errors.busy())
      return grant
    } catch (error) {
      queue.events.refused(event, since, error)
      throw error
    }
  }

  /** Rejects once the session has ended. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>> {
    if (this.ending) return Promise.reject(this.ending)
    const outcome = this.engine.submit(operation)
    if (outcome instanceof Promise) this.health.watch(outcome)
    return outcome
  }

  cleanUp(operation: Cancel | Release, lease: number, isCovered = false): void {
    void retryUntilExpired(
      () => this.send(operation),
      lease,
      this.clock,
      () => this.ending !== undefined,
      isCovered ? HEARTBEAT_INTERVAL : undefined,
    )
  }

  async submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.send(operation)
  }

  /** Acquires and releases a lock that no other box requests, because only a working engine can grant one. */
  async ping(): Promise<void> {
    const claims = [{ key: `signalbox-ping:${this.id}`, mode: 'exclusive' }] as const
    const request = { id: this.nextRequest(), session: this.id, claims, label: undefined }
    const status = await this.send({ type: 'enqueue', request, lease: PING_LEASE, wait: 0 })
    if (status.state !== 'held') return
    const release: Release = { type: 'release', request, number: status.number }
    try {
      // A ping settles after its release, so that `inspect` does not show its lock.
      await this.send(release)
    } catch (error) {
      this.cleanUp(release, PING_LEASE)
      throw error
    }
  }

  /** Returns the wall-clock time that all processes of the engine share: milliseconds since 1970. Rejects as `send`. */
  async wallClock(): Promise<number> {
    if (this.ending) throw this.ending
    if (!this.engine.wallClock) return wallOf(this.clock)()
    const time = Promise.resolve(this.engine.wallClock())
    this.health.watch(time)
    return time
  }

  /** Calls `task` after each change of a store key, until the returned object's `stop` is called. */
  watch(key: string, task: OnChange): Promise<Watching> {
    return this.#watchers.watch(key, task)
  }

  wake(id: string): void {
    this.#requested.get(id)?.wake()
  }

  lost(id: string, cause?: Error): void {
    const request = this.#requested.get(id)
    if (request) request.lost()
    else this.keeper.onLostHint(id, cause)
  }

  contended(id: string): void {
    this.keeper.contended(id)
  }

  reserved(key: string): void {
    const now = this.clock.now()
    const at = Math.ceil((now + CLAIM_WINDOW) / WINDOW_STEP) * WINDOW_STEP
    const others = this.#toSweep.get(at)
    if (others) return void others.add(key)
    this.#toSweep.set(at, new Set([key]))
    // If the waiter for which the key is reserved has not claimed it by then, the engine drops its request.
    this.clock.after(at - now, () => this.#sweepReserved(at), false)
  }

  changed(key: string): void {
    this.#watchers.changed(key)
  }

  missed(): void {
    this.#watchers.missed()
  }

  ended(cause: Error): void {
    if (this.ending) return
    this.ending = cause
    this.health.become('closed', cause)
    // mutant: close-keeps-grants
    this.keeper.loseAll(cause)
    for (const queue of [...this.waitingQueues()]) queue.failAll(cause)
    this.#watchers.end()
    this.#over.abort()
  }

  /** Ends the session from this side. Waiters are rejected with a ClosedError, and grants are lost. */
  close(): void {
    this.ended(boxClosed(this.engine.name))
    this.keeper.stop()
    this.#idleTimer?.cancel()
  }

  #sweepReserved(at: number): void {
    const keys = [...this.#toSweep.get(at)!]
    this.#toSweep.delete(at)
    // mutant: forget-reservations
    if (!this.ending) void this.submit({ type: 'sweepExpired', keys }).catch(() => undefined)
  }

  #dropIdleLater(): void {
    const delay = DROP_DELAY + this.#queues.size * DROP_DELAY_EACH
    const drop = (): void => {
      this.#idleTimer = undefined
      this.#dropIdleQueues()
      if (this.#queues.size > IDLE_QUEUES) this.#dropIdleLater()
    }
    this.#idleTimer = this.clock.after(delay, drop, false)
  }

  #dropIdleQueues(): void {
    // The queues that stay get a new map, see TransientMap.
    const used = new Map<string, LocalQueue>()
    for (const [signature, queue] of this.#queues) if (!queue.idle) used.set(signature, queue)
    this.#queues = used
    this.#dropIdleAt = Math.max(IDLE_QUEUES, 2 * this.#queues.size)
  }
}

function isObserved(): boolean {
  return channels.requested.hasSubscribers || channels.lockRefused.hasSubscribers
}
