/**
 * The rule of one limit, as decisions about a state that is passed in: no clock, no timer, and no state but the
 * definition. The same state and the same arguments give the same answer everywhere. So the rule serves a limiter of
 * this thread, which keeps the state in a variable, as well as an engine, which keeps it for many processes. The state
 * is plain data: numbers, and at most one array of them.
 *
 * Times are milliseconds on the clock of the keeper of the state. A caller that reserves ahead gives `take` the time
 * that `readyAt` returned; a caller that grants at once gives it the present.
 */
export interface Window<State = unknown> {
  /** So many permits are allowed in `per`. */
  readonly limit: number
  /** Milliseconds, without the guard against jitter. */
  readonly per: number
  readonly kind: 'sliding' | 'calendar' | 'smooth'
  /** Whether its times must be those of the wall clock. */
  readonly wall: boolean
  /** The state in which nothing was granted yet. */
  empty(): State
  /**
   * Whether `n` permits keep the bound now, and would do so if `ahead` others were given before.
   * @param lead for this many milliseconds they may be used from now on, beyond what the guard covers; default 0.
   */
  allows(state: State, now: number, n: number, ahead: number, lead?: number): boolean
  /**
   * The earliest time, `now` or later, at which `allows` says yes, if nothing is granted until then. With more ahead
   * than the limit has, a time that is not too late, as if all of them came as early as possible.
   * @param n 1 to `limit`.
   * @param lead as of `allows`.
   */
  readyAt(state: State, now: number, n: number, ahead: number, lead?: number): number
  /**
   * Counts `n` permits as given at `at`: where grants come in order, never before the time of an earlier call that was
   * not taken back.
   * @param late by how much a timer may have delayed this: milliseconds that even spacing need not wait for again.
   * @param now when that is decided; default `at`.
   * @param lead for this many milliseconds before `at` they may already be used; default 0.
   */
  take(state: State, n: number, at: number, late: number, now?: number, lead?: number): void
  /**
   * Counts `n` permits as `take` does, although they need not keep this limit, as coarsely as the state stays small.
   * @param now when that is decided.
   */
  note(state: State, n: number, at: number, now: number): void
  /** Continues with a state that counted the same permits under another limit. For rules with more than a count. */
  takeOver?(state: State): void
  /** Takes back `n` permits that were given at `at` and not used. Without effect where they don't count any more. */
  refund(state: State, n: number, at: number): void
  /** Whether nothing was given after `at`, as far as the state shows: then `refund` leaves no gap. */
  isNewest(state: State, at: number): boolean
  /** How many permits count at this time. */
  used(state: State, now: number): number
  /** When the first of the permits that count comes back; `now` when none counts. */
  returnsAt(state: State, now: number): number
  /** From when on the state is as good as an empty one. */
  forgottenAt(state: State): number
  /**
   * The clock was set back to `now`, before times that the state knows: all that counts is counted as given now,
   * because how long ago it was given is not known.
   */
  rebase(state: State, now: number): void
}

/** One limit at one moment. */
export interface LimitReport {
  readonly limit: number
  /** Milliseconds. */
  readonly per: number
  readonly window: 'sliding' | 'calendar' | 'smooth'
  /** How many permits are left now. */
  readonly remaining: number
  /** Milliseconds until the next permit comes back, for a calendar until the next period; 0 when none is out. */
  readonly resetIn: number
}
