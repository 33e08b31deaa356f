import {
  CLAIM_WINDOW,
  HEARD_EVERY,
  type Awaitable,
  type Cancel,
  type Engine,
  type Listener,
  type Operation,
  type OutcomeOf,
  type Release,
} from '../engine/contract.js'
import { giveBack } from '../engine/give-back.js'
import type { Clock } from '../clock.js'
import { channels, type LockEvent } from '../diagnostics.js'
import { BusyError, ClosedError } from '../errors.js'
import type { ClaimSet } from './claims.js'
import { LeaseKeeper } from './lease.js'
import type { TurnGrant } from './grant.js'
import { Line, type Ask, type LineSession } from './local-queue.js'
import { TaskFrames } from './deadlocks.js'
import { Watchers, type OnChange, type Watching } from './watchers.js'
import { TransientMap } from '../transient-map.js'

/** Lines that nobody uses are kept for the next caller of their claim set, until there are this many. */
const IDLE_LINES = 1024

/** Windows that end within so many milliseconds are looked after together. */
const SERVE_EVERY = CLAIM_WINDOW / 10

/** One engine session and what hangs on it: the local lines, the lease keeper, and who is to be told what. */
export class Session implements Listener, LineSession {
  readonly keeper: LeaseKeeper
  readonly frames: TaskFrames | undefined
  /** Set once the box is closed or the engine has ended the session: nothing more can be asked. */
  ending: Error | undefined
  /** Set while the box waits for its grants to be given back: tasks that hold some may still ask for more. */
  #draining: Error | undefined
  #lines = new Map<string, Line>()
  /** Lines with a request in the engine's queue, by request id. */
  readonly #queued = new TransientMap<string, Line>()
  readonly #watchers: Watchers
  readonly #wantedEarly = new Set<string>()
  /** Reserved keys by when their windows are over. */
  readonly #toServe = new Map<number, Set<string>>()
  /** When a waiter of this box was first to tell that it lives; all do so whole periods after that: clock time. */
  #firstBeat: number | undefined
  #requests = 0
  #sweepAt = IDLE_LINES
  /** Grants in use, for a close that drains. */
  #busy = 0
  #onIdle: (() => void) | undefined

  /** @param detectDeadlocks whether tasks are followed, so that one that waits for itself is told. */
  constructor(
    readonly id: string,
    readonly engine: Engine,
    readonly clock: Clock,
    detectDeadlocks: boolean,
  ) {
    this.keeper = new LeaseKeeper(engine, clock)
    this.frames = detectDeadlocks ? new TaskFrames() : undefined
    this.#watchers = new Watchers(id, operation => this.send(operation), clock)
  }

  /** A request id that no other request ever had. */
  nextRequest(): string {
    return `${this.id}.${(++this.#requests).toString(36)}`
  }

  /** The line of all local callers with this claim set. */
  line(set: ClaimSet, noun: string): Line {
    const known = this.#lines.get(set.signature)
    if (known) return known
    if (this.#lines.size >= this.#sweepAt) this.#sweep()
    const line = new Line(this, set, noun)
    this.#lines.set(set.signature, line)
    return line
  }

  /** All lines in which somebody waits, those for one caller only among them. */
  *waitingLines(): Generator<Line> {
    for (const line of this.#lines.values()) if (line.waiting) yield line
    for (const line of this.#queued.values())
      if (this.#lines.get(line.set.signature) !== line && line.waiting) yield line
  }

  /** Wake-ups for this request go to this line from now on. */
  expectWake(id: string, line: Line): void {
    this.#queued.set(id, line)
  }

  forgetWake(id: string): void {
    this.#queued.delete(id)
  }

  /**
   * After how long a waiter is to tell again that it lives: milliseconds, from half a period to a whole one. All of a
   * box do so at the same time, so that they share a message.
   */
  untilBeat(): number {
    const now = this.clock.now()
    this.#firstBeat ??= now
    const left = HEARD_EVERY - ((now - this.#firstBeat) % HEARD_EVERY)
    return left < HEARD_EVERY / 2 ? left + HEARD_EVERY / 2 : left
  }

  /** Why no new request is taken; undefined when it is. */
  refusal(): Error | undefined {
    return this.ending ?? (this.#draining && !this.frames?.inside() ? this.#draining : undefined)
  }

  /** Takes no new requests, rejects who waits, and settles when no grant is in use. */
  drain(): Promise<void> {
    this.#draining = this.#closed()
    for (const line of [...this.waitingLines()]) line.failAll(this.#draining)
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
   * Waits in a line on behalf of the calling task; a wait of 0 is an attempt.
   * @throws DeadlockError when the task would wait for itself, BusyError, and what `Line.acquire` throws
   */
  acquire(line: Line, ask: Ask): Promise<TurnGrant> {
    return isHeard()
      ? this.#told(line, request => this.#acquire(line, ask, request))
      : this.#acquire(line, ask)
  }

  /** The grant if it can be had without waiting for another holder or waiter, else undefined. */
  attempt(line: Line, ask: Ask): Awaitable<TurnGrant | undefined> {
    return isHeard() ? this.#toldAttempt(line, ask) : line.attempt(ask)
  }

  async #toldAttempt(line: Line, ask: Ask): Promise<TurnGrant | undefined> {
    try {
      return await this.#told(line, request => this.#attempt(line, ask, request))
    } catch (error) {
      if (error instanceof BusyError) return undefined
      throw error
    }
  }

  /** Tells of a request, and of its end unless that is a grant, which tells of itself. */
  async #told(line: Line, ask: (request: LockEvent) => Promise<TurnGrant>): Promise<TurnGrant> {
    const since = this.clock.now()
    const request = line.requested()
    try {
      return await ask(request)
    } catch (error) {
      line.refused(request, since, error)
      throw error
    }
  }

  #acquire(line: Line, ask: Ask, request?: LockEvent): Promise<TurnGrant> {
    // A signal that has aborted already is the line's to refuse.
    if (ask.wait === 0 && !ask.signal?.aborted) return this.#attempt(line, ask, request)
    const wait = (): Promise<TurnGrant> => line.acquire(ask, request)
    return this.frames ? this.frames.acquire(line, () => this.waitingLines(), wait) : wait()
  }

  async #attempt(line: Line, ask: Ask, request: LockEvent | undefined): Promise<TurnGrant> {
    const grant = await line.attempt(ask, request)
    if (grant) return grant
    throw new BusyError(`${line.noun} ${line.set.title} on ${this.engine.name} is busy`, line.context())
  }

  /** Sends an operation; an engine inside the process answers at once. Rejects with what ended the session. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>> {
    return this.ending ? Promise.reject(this.ending) : this.engine.submit(operation)
  }

  /** Sends an operation whose outcome nobody waits for; what it leaves undone ends with its lease. */
  background(operation: Operation): void {
    const outcome = this.send(operation)
    if (outcome instanceof Promise) outcome.catch(() => undefined)
  }

  /**
   * Gives back what nobody here uses, see {@link giveBack}.
   * @param lease how long it can be there without being heard of: milliseconds.
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

  /** Calls `task` after each change of a store key, until that is stopped. */
  watch(key: string, task: OnChange): Promise<Watching> {
    return this.#watchers.watch(key, task)
  }

  wake(id: string): void {
    this.#queued.get(id)?.wake(id)
  }

  lost(id: string, cause?: Error): void {
    const line = this.#queued.get(id)
    if (line) line.wake(id)
    else this.keeper.taken(id, cause)
  }

  wanted(id: string): void {
    // Where it is told by a message, what is not held is no longer held.
    if (!this.keeper.wanted(id) && this.engine.tellsWanted) this.#wantedEarly.add(id)
  }

  /** Whether somebody wanted a grant within the very call that gave it, before its holder was known here. */
  wantedEarly(id: string): boolean {
    return this.#wantedEarly.size > 0 && this.#wantedEarly.delete(id)
  }

  reserved(key: string): void {
    const now = this.clock.now()
    const at = Math.ceil((now + CLAIM_WINDOW) / SERVE_EVERY) * SERVE_EVERY
    const others = this.#toServe.get(at)
    if (others) return void others.add(key)
    this.#toServe.set(at, new Set([key]))
    // Whoever was woken and has not claimed by then is dropped.
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
    this.keeper.loseAll(cause.message)
    for (const line of [...this.waitingLines()]) line.failAll(cause)
    this.#watchers.end()
  }

  /** Ends the session from this side: waiters are rejected with a ClosedError, grants count as lost. */
  close(): void {
    this.ended(this.#closed())
    this.keeper.stop()
  }

  #closed(): ClosedError {
    return new ClosedError('the box was closed', { engine: this.engine.name })
  }

  #serveReserved(at: number): void {
    const keys = [...this.#toServe.get(at)!]
    this.#toServe.delete(at)
    if (!this.ending) this.background({ type: 'serve', keys })
  }

  #sweep(): void {
    // A map of its own for those that stay, see TransientMap.
    const used = new Map<string, Line>()
    for (const [signature, line] of this.#lines) if (!line.idle) used.set(signature, line)
    this.#lines = used
    this.#sweepAt = Math.max(IDLE_LINES, 2 * this.#lines.size)
  }
}

/** Whether requests or their refusals have a listener. */
function isHeard(): boolean {
  return channels.requested.hasSubscribers || channels.lockRefused.hasSubscribers
}
