import { onAbort } from './base/abort-task.js'
import type { Clock } from './base/clock.js'
import type { Grant } from './core/grant.js'
import type { Lock } from './core/lock.js'
import { checkedOptions, type LockOptions } from './core/lock-options.js'
import type { Session } from './core/session.js'
import { AbortedError, ClosedError, InvalidArgumentError, shown, SignalboxError } from './base/errors.js'
import { failureText } from './base/failure-text.js'
import { checkOptions, checkTask, flag } from './base/options.js'
import { pause } from './base/pause.js'
import { MAX_AHEAD, type Runs } from './runs.js'
import { timetable, type Slot, type Times, type Timetable } from './slots.js'

/** Options of {@link Box.schedule}. */
export interface ScheduleOptions extends Pick<LockOptions, 'lease' | 'label'> {
  /**
   * Whether a missed slot runs late; default false. A slot is missed if no process kept the schedule when it began, if
   * the machine slept then, or if the run of an earlier slot lasted until after it. Of several missed slots, only the
   * last one runs. With true, the first deployment also runs the slot that has begun last.
   */
  catchUp?: boolean | undefined
  /**
   * Receives the errors of the task, and those of the engine, which prevent or interrupt a run. Default: the process
   * emits a warning for each.
   */
  onError?: ((error: unknown, slot: Slot) => unknown) | undefined
}

/** The task of a schedule. */
export type ScheduledTask = (grant: Grant, slot: Slot) => unknown

/** A schedule that this process keeps. */
export interface Schedule extends AsyncDisposable {
  readonly name: string
  /** The slot that begins next. While a run is due or in progress, its slot. Undefined if the schedule has ended. */
  readonly next: Slot | undefined
  /**
   * Ends the schedule in this process, and waits for a run in progress. Other processes continue. A call by the task
   * itself does not wait, unless `detectDeadlocks` is false.
   */
  stop(): Promise<void>
}

/** Maximum time between two looks at the clock that all processes share, in milliseconds. */
const MAX_PAUSE = 60_000
/** If a pause lasts this much too long, the machine slept, and slots were missed; in milliseconds. */
const MAX_LATE = 60_000
/**
 * Bounds of the pause after an error of the engine, in milliseconds. It doubles each time, and ends when the next slot
 * begins: an engine that can be reached again by then runs that slot.
 */
const MIN_RETRY_PAUSE = 1000
const MAX_RETRY_PAUSE = 10_000
const NAMES = ['catchUp', 'onError', 'lease', 'label']

export interface ScheduleParts {
  readonly session: Session
  readonly runs: Runs
  readonly lock: Lock
}

export class Schedules {
  readonly #all = new Map<string, KeptSchedule>()

  /** See `Box.schedule`. @throws InvalidArgumentError, and why the session refuses requests */
  start(
    parts: ScheduleParts,
    name: string,
    times: Times,
    task: ScheduledTask,
    options: ScheduleOptions | undefined,
  ): Schedule {
    const refusal = parts.session.refusal()
    if (refusal) throw refusal
    if (this.#all.has(name)) {
      throw new InvalidArgumentError(
        `this box already has a schedule ${shown(name)}: stop it first, or use another name`,
      )
    }
    const schedule = new KeptSchedule(parts, name, times, task, options, () => this.#all.delete(name))
    this.#all.set(name, schedule)
    return schedule
  }

  /** Ends all schedules. Settles when no task of theirs runs, except the one that calls this. */
  async end(): Promise<void> {
    await Promise.all([...this.#all.values()].map(schedule => schedule.end()))
  }
}

class KeptSchedule implements Schedule {
  readonly name: string
  readonly #session: Session
  readonly #clock: Clock
  readonly #runs: Runs
  readonly #lock: Lock
  readonly #times: Timetable
  readonly #task: ScheduledTask
  readonly #catchUp: boolean
  readonly #onError: ((error: unknown, slot: Slot) => unknown) | undefined
  readonly #lockOptions: LockOptions
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  #next: Slot | undefined
  /** The time up to which no slot that begins shall run: it is done, or missed. Milliseconds since 1970. */
  #handled = 0
  readonly #started: number
  /** The last known time of the clock that all processes share, and the time of the own clock then. */
  #known: { readonly shared: number; readonly at: number }
  #running: { readonly grant: Grant; readonly settled: Promise<void> } | undefined

  constructor(
    { session, runs, lock }: ScheduleParts,
    name: string,
    times: Times,
    task: ScheduledTask,
    options: ScheduleOptions = {},
    onEnd: () => void,
  ) {
    checkOptions(options, NAMES)
    const { catchUp, onError, lease, label } = options
    checkTask('a schedule', task, 'schedule(name, times, task, options)')
    if (onError !== undefined && typeof onError !== 'function')
      throw new InvalidArgumentError(`onError must be a function, not ${shown(onError)}`)
    this.#lockOptions = { lease, label, signal: this.#stopping.signal }
    checkedOptions(this.#lockOptions)
    this.name = name
    this.#session = session
    this.#clock = session.clock
    this.#runs = runs
    this.#lock = lock
    this.#times = timetable('times', times)
    this.#task = task
    this.#catchUp = flag('catchUp', catchUp, false)
    this.#onError = onError
    this.#started = this.#clock.now()
    this.#known = { shared: runs.ownNow(), at: this.#started }
    this.#begin()
    if (!this.#next) {
      const { cron } = times as { cron?: unknown }
      throw new InvalidArgumentError(`cron must have a time in the future, unlike ${shown(cron)}`)
    }
    const keep = async (): Promise<void> => {
      await this.#keep()
      this.#next = undefined
      onEnd()
    }
    // A schedule outlives the task that starts it, and does not share its locks.
    this.#ended = session.deadlocks ? session.deadlocks.outside(keep) : keep()
  }

  get next(): Slot | undefined {
    return this.#next
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    if (!this.#isCalledByTask()) await this.#ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** As `stop`, but does not wait for the engine, which may not reply. */
  async end(): Promise<void> {
    this.#stopping.abort()
    if (!this.#isCalledByTask()) await this.#running?.settled
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted || this.#session.refusal() !== undefined
  }

  #isCalledByTask(): boolean {
    return this.#running !== undefined && this.#session.deadlocks?.isTaskOf(this.#running.grant) === true
  }

  /** The time of the clock that all processes share, as far as it is known. */
  get #now(): number {
    return this.#known.shared + this.#clock.now() - this.#known.at
  }

  #begin(): void {
    const start = this.#now - (this.#clock.now() - this.#started)
    const latest = this.#catchUp ? this.#times.latest(start) : undefined
    this.#handle(latest ? latest.at.getTime() - 1 : start)
  }

  #handle(until: number): void {
    this.#handled = until
    this.#next = this.#times.after(until)
  }

  async #keep(): Promise<void> {
    if (!(await this.#isReady())) return
    await this.#readClock()
    this.#begin()
    let retryPause = MIN_RETRY_PAUSE
    while (this.#next && !this.#isOver) {
      const left = this.#next.at.getTime() - this.#now
      if (left > 0) {
        await this.#pause(left)
      } else if (await this.#attempt(this.#next)) {
        retryPause = MIN_RETRY_PAUSE
      } else {
        const following = this.#times.after(this.#now)
        await this.#pause(following ? Math.min(retryPause, following.at.getTime() - this.#now) : retryPause)
        retryPause = Math.min(retryPause * 2, MAX_RETRY_PAUSE)
      }
    }
    const { ending } = this.#session
    if (ending && !(ending instanceof ClosedError) && this.#next) this.#report(ending, this.#next)
  }

  /** Returns false if the engine has no values, so that it can't keep the record. Reports other errors, too. */
  async #isReady(): Promise<boolean> {
    try {
      await this.#runs.check([this.name])
    } catch (error) {
      if (!this.#isOver) this.#report(error, this.#next!)
      return !(error instanceof InvalidArgumentError)
    }
    return true
  }

  /** Waits at most this long, and looks at the clock. */
  async #pause(length: number): Promise<void> {
    const longest = Math.min(length, MAX_PAUSE)
    const until = this.#now + longest
    await pause(longest, this.#clock, this.#stopping.signal, this.#session.over)
    // A box that is being closed sends nothing more.
    if (this.#isOver) return
    const late = this.#now - until
    const ahead = await this.#readClock()
    const isSetBack = this.#handled - this.#now > MAX_AHEAD
    if (isSetBack || (!this.#catchUp && Math.max(late, ahead) > MAX_LATE)) this.#handle(this.#now)
  }

  /**
   * Reads the clock that all processes share. Without a reply, the last known time counts.
   * @returns by how much the clock is ahead of that, in milliseconds
   */
  async #readClock(): Promise<number> {
    let letGo: (() => void) | undefined
    const stopped = new Promise<undefined>(resolve => {
      letGo = onAbort(this.#stopping.signal, () => resolve(undefined))
    })
    const shared = await Promise.race([this.#runs.now(), stopped]).catch(() => undefined)
    letGo?.()
    if (shared === undefined) return 0
    const ahead = shared - this.#now
    this.#known = { shared, at: this.#clock.now() }
    return ahead
  }

  /**
   * Runs the task for the slot that is current when it gets the lock, unless another process has.
   * @returns false to try again
   */
  async #attempt(due: Slot): Promise<boolean> {
    let called: Slot | undefined
    let hasRun = false
    try {
      await this.#lock.run(async grant => {
        await this.#readClock()
        const began = this.#now
        const slot = this.#times.latest(began)
        // The clock may have been set back since.
        if (!slot || slot.at.getTime() <= this.#handled) return
        const run = await this.#runs.of([this.name], slot, began)
        if (!run.isDone) {
          grant.assertHeld()
          if (this.#isOver) return
          this.#next = called = slot
          await this.#call(grant, slot)
          hasRun = true
        }
        const last = this.#catchUp ? slot : (this.#times.latest(this.#now) ?? slot)
        this.#handle((hasRun ? last : slot).at.getTime())
        if (hasRun) await run.done(last)
      }, this.#lockOptions)
      return true
    } catch (error) {
      // The task may throw an AbortedError, too.
      const isStopped = !called && error instanceof AbortedError
      const isEnd = isStopped || (error instanceof SignalboxError && this.#session.refusal())
      if (!isEnd) this.#report(error, called ?? due)
      return hasRun
    }
  }

  /** Calls the task. @throws its error if the grant is lost, so that its slot is not done */
  async #call(grant: Grant, slot: Slot): Promise<void> {
    let settle: (() => void) | undefined
    this.#running = { grant, settled: new Promise<void>(resolve => (settle = resolve)) }
    try {
      await this.#task(grant, slot)
    } catch (error) {
      if (grant.expiresIn() <= 0) throw error
      this.#report(error, slot)
    } finally {
      this.#running = undefined
      settle?.()
    }
  }

  #report(error: unknown, slot: Slot): void {
    const warn = (why: string, cause: unknown): void =>
      process.emitWarning(
        `schedule '${this.name}' ${why} ${slot.name}: ${failureText(cause)}`,
        'SignalboxWarning',
      )
    const onError = this.#onError
    if (!onError) return warn('failed for', error)
    void (async () => onError(error, slot))().catch((own: unknown) =>
      warn('got an error of onError for', own),
    )
  }
}
