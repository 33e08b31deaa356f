import type { SharedRing } from './shared-ring.js'

/** The state of a limit at one moment. */
export interface SharedUse {
  readonly used: number
  /** Milliseconds until the next permit returns; 0 if none is in use. */
  readonly resetIn: number
}

/**
 * The rule of one limit: decisions on the ring of grants that all threads share. Each rule reads the entries of the
 * ring before a head. A thread that then advances that head has claimed its grants under all limits at once. So no
 * limit refuses after another one has granted permits that would have to be returned, and there is no lock that a
 * thread could leave behind when it ends.
 *
 * `look` comes first: it reads the state of the rule outside the ring. The calls that follow are about the same head
 * and time.
 */
export abstract class SharedWindow {
  constructor(
    readonly limit: number,
    protected readonly ring: SharedRing,
  ) {}

  /** @param head read before. @param now clock time, read after the head. */
  look(_head: number, _now: number): void {
    // Most rules need only the ring.
  }

  /**
   * Returns the clock time from which the last of a number of permits can be claimed; a past time if that was possible
   * before. Assumes that the waiters ahead get their permits as early as possible.
   * @param wanted counted from the head.
   * @param others number of them for waiters that come first.
   */
  abstract readyAt(head: number, now: number, wanted: number, others: number): number

  /** Returns the first time, `time` or later, at which the rule can grant permits at all. */
  openFrom(time: number): number {
    return time
  }

  /**
   * Whether the result of `readyAt` is still right; otherwise the stamped grants are returned.
   * @param wall the wall clock, read after the stamping.
   */
  holds(_wall: number): boolean {
    return true
  }

  /** Called when grants from the head on were claimed and stamped. @param late as in `Counter.take`. */
  given(_head: number, _n: number, _time: number, _late: number): void {
    // Most rules need only the ring.
  }

  /** The state of the limit, after `look`. */
  abstract use(head: number, now: number): SharedUse

  /** Permits that were granted before this clock time have returned. */
  abstract countsFrom(now: number): number

  /**
   * Returns the number of whole windows before the last of a number of permits, if each `limit` permits take a window.
   */
  protected windowsBefore(wanted: number): number {
    return Math.ceil(wanted / this.limit) - 1
  }

  /**
   * Returns the grant that must return before the last of these permits. @param windows the number of windows before.
   */
  protected grantBefore(head: number, wanted: number, windows: number): number {
    return (head + wanted - (windows + 1) * this.limit - 1) | 0
  }
}

/** At most `limit` permits in any interval: the grant that is `limit` grants earlier must be at least that old. */
export class SharedSliding extends SharedWindow {
  /** Milliseconds, including the guard for jitter. */
  readonly #memory: number

  /** @param memory time for which a permit counts, in milliseconds. */
  constructor(limit: number, memory: number, ring: SharedRing) {
    super(limit, ring)
    this.#memory = memory
  }

  readyAt(head: number, now: number, wanted: number, _others: number): number {
    // Beyond the limit, each permit follows the one `limit` before it by one window.
    const windows = this.windowsBefore(wanted)
    const grant = this.grantBefore(head, wanted, windows)
    return this.ring.timeAtHead(grant, head, now) + this.#memory * (windows + 1)
  }

  use(head: number, now: number): SharedUse {
    const memory = this.#memory
    const { count, oldest } = this.ring.recent(head, this.limit, now, time => now - time < memory)
    return { used: count, resetIn: count === 0 ? 0 : oldest + memory - now }
  }

  countsFrom(now: number): number {
    return now - this.#memory
  }
}
