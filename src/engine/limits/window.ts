/**
 * The rule of one limit: pure decisions on a state that is passed in, without a clock or timers. So the rule serves a
 * limiter of this thread, which keeps the state in a variable, as well as an engine, which keeps it for many processes.
 * The state is plain data: numbers, arrays of numbers, and objects of these.
 *
 * Times are milliseconds by the clock of the limiter or engine. A caller that reserves ahead passes the time that
 * `readyAt` returned to `take`; a caller that grants at once passes the current time.
 */
export interface Window<State = unknown> {
  /** Maximum number of permits in `per`. */
  readonly limit: number
  /** Milliseconds, without the guard for jitter. */
  readonly per: number
  readonly kind: 'sliding' | 'calendar' | 'smooth'
  /** Whether its times must be those of the wall clock. */
  readonly wall: boolean
  /** The state before the first grant. */
  empty(): State
  /**
   * Whether `n` permits keep the bound now, even if `ahead` others are granted before.
   * @param lead milliseconds for which they can be used from now on, in addition to the guard; default 0.
   */
  allows(state: State, now: number, n: number, ahead: number, lead?: number): boolean
  /**
   * Returns the earliest time, `now` or later, at which `allows` returns true if nothing is granted until then. If
   * `ahead` exceeds the limit, returns a time that is not too late, as if all of those came as early as possible.
   * @param n 0 to `limit`.
   * @param lead as for `allows`.
   */
  readyAt(state: State, now: number, n: number, ahead: number, lead?: number): number
  /**
   * Counts `n` permits as granted at `at`. If grants come in order, `at` is never before that of an earlier call that
   * was not refunded.
   * @param late maximum delay of this call by a timer, for which even spacing makes up, in milliseconds.
   * @param now the time of the decision; default `at`.
   * @param lead milliseconds before `at` from which they can be used; default 0.
   */
  take(state: State, n: number, at: number, late: number, now?: number, lead?: number): void
  /**
   * Counts `n` permits as `take` does, even if they exceed this limit; coarsely, so that the state stays small.
   * @param now the time of the decision.
   */
  note(state: State, n: number, at: number, now: number): void
  /**
   * Adopts a state that has counted the same permits under another limit. For rules whose state is more than a count.
   */
  takeOver?(state: State): void
  /** Takes back `n` permits that were granted at `at` and not used, if they still count. */
  refund(state: State, n: number, at: number): void
  /**
   * Counts a change of an amount, as {@link settle} does. For rules whose state is more than a count.
   */
  settle?(state: State, change: number, at: number, now: number): void
  /** Whether nothing was granted after `at`, as far as the state shows: then `refund` leaves no gap. */
  isNewest(state: State, at: number): boolean
  /** Number of permits that count at this time. */
  used(state: State, now: number): number
  /** When the first of the permits that count returns; `now` if none counts. */
  returnsAt(state: State, now: number): number
  /** From when the state equals an empty one. */
  forgottenAt(state: State): number
  /**
   * Called when the clock was set back to `now`, before times in the state. All permits that count are counted as
   * granted now, because it is not known how long ago they were granted.
   */
  rebase(state: State, now: number): void
}

/**
 * Counts a change of the amount that was granted at `at`, and became known at `now`. If it is negative, others can get
 * the difference. If it is positive, the difference counts from now on, even if it exceeds the limit.
 */
export function settle(window: Window, state: unknown, change: number, at: number, now: number): void {
  if (window.settle) window.settle(state, change, at, now)
  else if (change > 0) window.note(state, change, now, now)
  else window.refund(state, -change, at)
}

/** Reports the state of a limit. @param now the time by its clock. */
export function limitReport(
  window: Window,
  unit: string | undefined,
  state: unknown,
  now: number,
): LimitReport {
  const { limit, per, kind } = window
  const remaining = Math.max(limit - window.used(state, now), 0)
  return { limit, per, window: kind, unit, remaining, resetIn: window.returnsAt(state, now) - now }
}

/** The state of a limit at one moment. */
export interface LimitReport {
  readonly limit: number
  /** Milliseconds. */
  readonly per: number
  readonly window: 'sliding' | 'calendar' | 'smooth'
  /** What it counts; undefined for calls. */
  readonly unit?: string | undefined
  /** Number of permits that remain now. */
  readonly remaining: number
  /** Milliseconds until the next permit returns, for a calendar until the next period; 0 if none is in use. */
  readonly resetIn: number
}
