import type { RingReader } from './ring-reader.js'

/** What counts of one limit at one moment. */
export interface SharedUse {
  readonly used: number
  /** Milliseconds until the next permit comes back; 0 when none is out. */
  readonly resetIn: number
}

/**
 * The rule of one limit, as decisions about the ring of grants that all threads share. Every rule is kept by looking at
 * what stands in the ring before a head. A thread that then moves that head on has claimed its grants under all limits
 * at once. So no limit refuses after another one has given something that would need to be given back. Nor is there a
 * lock that a thread could leave behind when it is ended.
 *
 * `look` comes first: it reads what the rule needs besides the ring. The calls that follow are about the same head and
 * time.
 */
export abstract class SharedWindow {
  constructor(
    readonly limit: number,
    protected readonly reader: RingReader,
  ) {}

  /** @param head read before. @param now clock time, read after the head. */
  look(_head: number, _now: number): void {
    // The ring is enough.
  }

  /**
   * When the last of a number of permits can be claimed: clock time, in the past if that was possible before. Where
   * waiters come first, it is as if they came as early as possible.
   * @param wanted counted from the head.
   * @param others how many of them are for waiters that come first.
   */
  abstract readyAt(head: number, now: number, wanted: number, others: number): number

  /** The first time, `time` or later, at which the rule does not refuse every caller, regardless of what was given. */
  openFrom(time: number): number {
    return time
  }

  /**
   * Whether the answer of `readyAt` still holds: else the stamped grants are given back.
   * @param wall the wall clock, read after the stamping.
   */
  holds(_wall: number): boolean {
    return true
  }

  /** Grants from the head on were claimed and stamped. @param late as in `Counter.take`. */
  given(_head: number, _n: number, _time: number, _late: number): void {
    // The ring is enough.
  }

  /** What counts, after `look`. */
  abstract use(head: number, now: number): SharedUse

  /** Clock time: what was given before has come back. */
  abstract countsFrom(now: number): number

  /**
   * How many whole windows pass before the last of a number of permits, where every `limit` permits come a window
   * later.
   */
  protected windowsBefore(wanted: number): number {
    return Math.ceil(wanted / this.limit) - 1
  }

  /** The grant that must be over for it. @param windows those before. */
  protected grantBefore(head: number, wanted: number, windows: number): number {
    return (head + wanted - (windows + 1) * this.limit - 1) | 0
  }
}
