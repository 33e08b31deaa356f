import {
  CLAIM_WINDOW,
  HEARTBEAT_INTERVAL,
  type Awaitable,
  type Cancel,
  type Engine,
  type Listener,
  type Operation,
  type OutcomeOf,
  type Release,
  type SessionInfo,
} from '../engine/contract.js'
import { giveBack } from '../engine/give-back.js'
import { wallOf, type Clock, type Timer } from '../clock.js'
import { channels, type LockEvent } from '../diagnostics.js'
import { ClosedError } from '../errors.js'
import type { ClaimSet } from './claims.js'
import { Health } from './health.js'
import { LeaseKeeper } from './lease-keeper.js'
import type { LocalGrant } from './grant.js'
import type { AcquireRequest } from './lock-options.js'
import { LocalQueue, type QueueSession } from './local-queue.js'
import { DeadlockDetector } from './deadlocks.js'
import { Watchers, type OnChange, type Watching } from './watchers.js'
import { TransientMap } from '../transient-map.js'

/** Idle local queues are kept for the next caller of their claim set, until there are this many queues. */
const IDLE_QUEUES = 1024
/** Pause before idle queues are dropped when there are more, and what each queue adds to it, in milliseconds. */
const SWEEP_PAUSE = 1000
const SWEEP_PAUSE_EACH = 0.01

/** Reservation windows that end within this time of each other are served together, in milliseconds. */
const SERVE_EVERY = CLAIM_WINDOW / 10

/** The lease of a ping, in milliseconds. */
const PING_LEASE = 5000

/** One engine session, with its local queues, its lease keeper and its watchers. Passes the engine's hints to them. */
export class Session implements Listener, QueueSession {
  readonly id: string
  readonly keeper: LeaseKeeper
  readonly health: Health
  readonly deadlocks: DeadlockDetector | undefined
  /** Set once the box is closed or the engine has ended the session: nothing more can be asked. */
  ending: Error | undefined
  readonly #over = new AbortController()
  /** Set while the box waits for the release of its grants. Tasks that hold some may still ask for more. */
  #draining: Error | undefined
  #queues = new Map<string, LocalQueue>()
  /** Local queues with a request in the engine's queue, by request id. */
  readonly #queued = new TransientMap<string, LocalQueue>()
  readonly #watchers: Watchers
  /** Reserved keys, by the end of their windows. */
  readonly #toServe = new Map<number, Set<string>>()
  /** From when the periods count after which the waiters of this box report that they are alive: clock time. */
  #firstBeat: number | undefined
  #requests = 0
  #sweepAt = IDLE_QUEUES
  #sweeper: Timer | undefined
  /** Grants in use, for a close that drains. */
  #busy = 0
  #onIdle: (() => void) | undefined

  /** @param detectDeadlocks whether tasks are followed, so that a task that would wait for itself gets an error. */
  constructor(
    readonly member: SessionInfo,
    readonly engine: Engine,
    readonly clock: Clock,
    detectDeadlocks: boolean,
  ) {
    this.id = member.session
    this.keeper = new LeaseKeeper(engine, clock)
    this.health = new Health({ engine: engine.name, session: this.id }, () => this.ping())
    this.deadlocks = detectDeadlocks ? new DeadlockDetector() : undefined
    this.#watchers = new Watchers(this.id, operation => this.send(operation), clock)
  }

  /** Aborts when {@link ending} is set. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** A request id that no other request ever had. */
  nextRequest(): string {
    return `${this.id}.${(++this.#requests).toString(36)}`
  }

  /** The queue of all local callers with this claim set. */
  queueFor(set: ClaimSet, noun: string): LocalQueue {
    const known = this.#queues.get(set.signature)
    if (known) return known
    if (this.#queues.size >= this.#sweepAt) this.#sweep()
    const queue = new LocalQueue(this, set, noun)
    this.#queues.set(set.signature, queue)
    if (this.#queues.size > IDLE_QUEUES && !this.#sweeper) this.#sweepLater()
    return queue
  }

  /** All local queues with waiters, including those made for a single caller. */
  *waitingQueues(): Generator<LocalQueue> {
    for (const queue of this.#queues.values()) if (queue.waiting) yield queue
    for (const queue of this.#queued.values())
      if (this.#queues.get(queue.set.signature) !== queue && queue.waiting) yield queue
  }

  /** Sends wake-ups for this request to this queue from now on. */
  expectWake(id: string, queue: LocalQueue): void {
    this.#queued.set(id, queue)
  }

  forgetWake(id: string): void {
    this.#queued.delete(id)
  }

  /**
   * After how long a waiter has to report again that it is alive: milliseconds, from half a period to a whole one. All
   * waiters of a box do so at the same time, so that they share a message.
   */
  untilBeat(): number {
    const now = this.clock.now()
    this.#firstBeat ??= now
    const left = HEARTBEAT_INTERVAL - ((now - this.#firstBeat) % HEARTBEAT_INTERVAL)
    return left < HEARTBEAT_INTERVAL / 2 ? left + HEARTBEAT_INTERVAL / 2 : left
  }

  /** Why new requests are refused; undefined when they are accepted. */
  refusal(): Error | undefined {
    return this.ending ?? (this.#draining && !this.deadlocks?.inside() ? this.#draining : undefined)
  }

  /** Refuses new requests, rejects all waiters, and settles when no grant is in use. */
  drain(): Promise<void> {
    this.#draining = this.#closed()
    for (const queue of [...this.waitingQueues()]) queue.failAll(this.#draining)
    return this.#busy === 0 ? Promise.resolve() : new Promise(resolve => (this.#onIdle = resolve))
  }

  /** Counts a grant as in use until {@link finished}. */
  began(): void {
    this.#busy++
  }

  finished(): void {
    if (--this.#busy === 0) this.#onIdle?.()
  }

  /**
   * Waits in a local queue on behalf of the calling task; a wait of 0 is an attempt.
   * @throws DeadlockError when the task would wait for itself, BusyError, and what `LocalQueue.acquire` throws
   */
  acquire(queue: LocalQueue, request: AcquireRequest): Promise<LocalGrant> {
    // The local queue refuses a request whose signal has aborted already.
    if (request.wait === 0 && !request.signal?.aborted) return this.#acquireAtOnce(queue, request)
    return isObserved()
      ? this.#published(queue, event => this.#wait(queue, request, event))
      : this.#wait(queue, request)
  }

  /** The grant if it is available without waiting for another holder or waiter, else undefined. */
  attempt(queue: LocalQueue, request: AcquireRequest): Awaitable<LocalGrant | undefined> {
    return isObserved()
      ? this.#published(queue, event => queue.attempt(request, event))
      : queue.attempt(request)
  }

  async #acquireAtOnce(queue: LocalQueue, request: AcquireRequest): Promise<LocalGrant> {
    const grant = await this.attempt(queue, request)
    if (grant) return grant
    throw queue.errors.busy()
  }

  #wait(queue: LocalQueue, request: AcquireRequest, event?: LockEvent): Promise<LocalGrant> {
    const wait = (): Promise<LocalGrant> => queue.acquire(request, event)
    return this.deadlocks ? this.deadlocks.acquire(queue, () => this.waitingQueues(), wait) : wait()
  }

  /** Publishes a request, and its refusal. A grant is published where it is made. */
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

  /** Sends an operation; an engine inside the process answers at once. Rejects with what ended the session. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>> {
    if (this.ending) return Promise.reject(this.ending)
    const outcome = this.engine.submit(operation)
    if (outcome instanceof Promise) this.health.watch(outcome)
    return outcome
  }

  /** Sends an operation and ignores its outcome. If it fails, what it should have ended ends with its lease. */
  background(operation: Operation): void {
    const outcome = this.send(operation)
    if (outcome instanceof Promise) outcome.catch(() => undefined)
  }

  /**
   * Gives back what is not used in this process, see {@link giveBack}.
   * @param lease how long the engine keeps it without a renewal, in milliseconds.
   */
  giveBack(operation: Cancel | Release, lease: number): void {
    void giveBack(
      () => this.send(operation),
      lease,
      this.clock,
      () => this.ending !== undefined,
    )
  }

  /** Sends an operation and waits for the outcome. */
  async submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.send(operation)
  }

  /** Takes a lock that no other box asks for, and gives it back: only an engine that works can grant one. */
  async ping(): Promise<void> {
    const claims = [{ key: `signalbox-ping:${this.id}`, mode: 'exclusive' }] as const
    const request = { id: this.nextRequest(), session: this.id, claims, label: undefined }
    const status = await this.send({ type: 'enqueue', request, lease: PING_LEASE, wait: 0 })
    if (status.state !== 'held') return
    const release: Release = { type: 'release', request, number: status.number }
    try {
      // A ping that is over leaves no lock that a reader could see.
      await this.send(release)
    } catch (error) {
      this.giveBack(release, PING_LEASE)
      throw error
    }
  }

  /** The wall clock that all processes of the engine share: milliseconds since 1970. Rejects as `send` does. */
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
    this.#queued.get(id)?.wake(id)
  }

  lost(id: string, cause?: Error): void {
    const queue = this.#queued.get(id)
    if (queue) queue.wake(id)
    else this.keeper.takenAway(id, cause)
  }

  contended(id: string): void {
    this.keeper.contended(id)
  }

  reserved(key: string): void {
    const now = this.clock.now()
    const at = Math.ceil((now + CLAIM_WINDOW) / SERVE_EVERY) * SERVE_EVERY
    const others = this.#toServe.get(at)
    if (others) return void others.add(key)
    this.#toServe.set(at, new Set([key]))
    // A waiter that was woken and has not claimed by then is dropped.
    this.clock.after(at - now, () => this.#serveReserved(at), false)
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
    this.health.end(cause)
    this.keeper.loseAll(cause)
    for (const queue of [...this.waitingQueues()]) queue.failAll(cause)
    this.#watchers.end()
    this.#over.abort()
  }

  /** Ends the session from this side. Waiters are rejected with a ClosedError, and grants are lost. */
  close(): void {
    this.ended(this.#closed())
    this.keeper.stop()
    this.#sweeper?.cancel()
  }

  #closed(): ClosedError {
    return new ClosedError('the box was closed', { engine: this.engine.name })
  }

  #serveReserved(at: number): void {
    const keys = [...this.#toServe.get(at)!]
    this.#toServe.delete(at)
    // mutant: forget-reservations
    if (!this.ending) this.background({ type: 'sweepExpired', keys })
  }

  #sweepLater(): void {
    const pause = SWEEP_PAUSE + this.#queues.size * SWEEP_PAUSE_EACH
    const sweep = (): void => {
      this.#sweeper = undefined
      this.#sweep()
      if (this.#queues.size > IDLE_QUEUES) this.#sweepLater()
    }
    this.#sweeper = this.clock.after(pause, sweep, false)
  }

  #sweep(): void {
    // A new map for the queues that stay, see TransientMap.
    const used = new Map<string, LocalQueue>()
    for (const [signature, queue] of this.#queues) if (!queue.idle) used.set(signature, queue)
    this.#queues = used
    this.#sweepAt = Math.max(IDLE_QUEUES, 2 * this.#queues.size)
  }
}

/** Whether requests or their refusals have a listener. */
function isObserved(): boolean {
  return channels.requested.hasSubscribers || channels.lockRefused.hasSubscribers
}
