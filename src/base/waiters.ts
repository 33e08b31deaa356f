import { onAbort } from './abort-task.js'
import type { Clock, Timer } from './clock.js'
import { Deadlines } from './deadlines.js'

/** A caller in a queue. Kept small, because there may be a hundred thousand. */
export class Waiter {
  previous: Waiter | undefined
  next: Waiter | undefined
  /** Its place in the queue; undefined once it has left. */
  rank: Rank | undefined
  /** The limits on its wait, if any. */
  waitLimit: WaitLimit | undefined

  /** @param n the number of permits that it wants; 1 for a lock. */
  constructor(readonly n: number) {}

  get isQueued(): boolean {
    return this.rank !== undefined
  }
}

interface WaitLimit {
  /** Maximum wait, in milliseconds; Infinity for none. */
  readonly wait: number
  readonly signal: AbortSignal | undefined
  /** Clock time; Infinity for none. */
  readonly deadline: number
  readonly letGo: (() => void) | undefined
}

class Rank {
  first: Waiter | undefined
  last: Waiter | undefined
  callers = 0
  permits = 0

  constructor(readonly priority: number) {}
}

export interface WaitersOwner<W extends Waiter> {
  /**
   * Called at the time of the next check or of a deadline. No timer is set then.
   * @param now clock time, at least the time for which the timer was set, even if the clock rounds it down.
   */
  timeOver(now: number): void
  aborted(waiter: W, signal: AbortSignal): void
}

/** Minimum delay of a timer, and of a wait, in milliseconds. A shorter one could be lost in rounding. */
export const MIN_DELAY = 0.001

/**
 * The queue of the local callers that wait for a lock or for permits: by priority, then in order of arrival. The costs
 * of entering and leaving do not depend on the place. There is one timer for all, for the earliest deadline or the
 * owner's next check. While callers wait, the timer keeps the process alive.
 */
export class Waiters<W extends Waiter> {
  readonly #clock: Clock
  readonly #owner: WaitersOwner<W>
  /** The greatest priority first. There is always a rank; an empty one is the only one. */
  readonly #ranks: Rank[] = [new Rank(0)]
  #deadlines: Deadlines<W> | undefined
  /** Number of waiters with a deadline or a signal. */
  #limited = 0
  /** The time of the owner's next check: clock time. */
  #checkAt = Infinity
  #timer: Timer | undefined
  #timerAt = Infinity
  #timerKeepsAlive = false
  callers = 0
  /** Number of permits that the waiters want. */
  permits = 0

  constructor(clock: Clock, owner: WaitersOwner<W>) {
    this.#clock = clock
    this.#owner = owner
  }

  get first(): W | undefined {
    return this.#ranks[0]!.first as W | undefined
  }

  after({ next, rank }: W): W | undefined {
    return (next ?? this.#ranks[this.#ranks.indexOf(rank!) + 1]?.first) as W | undefined
  }

  /** All waiters, in the order of their turns. The loop may remove the current waiter. */
  *[Symbol.iterator](): Generator<W, void, void> {
    for (const rank of [...this.#ranks]) {
      for (let waiter = rank.first; waiter;) {
        const { next } = waiter
        yield waiter as W
        waiter = next
      }
    }
  }

  /** The number of waiters ahead of a new caller, and of the permits that they want. */
  before(priority: number): { readonly callers: number; readonly permits: number } {
    let callers = 0
    let permits = 0
    for (const rank of this.#ranks) {
      if (rank.priority < priority) break
      callers += rank.callers
      permits += rank.permits
    }
    return { callers, permits }
  }

  add(waiter: W, priority = 0): void {
    const rank = this.#rank(priority)
    waiter.rank = rank
    waiter.previous = rank.last
    if (rank.last) rank.last.next = waiter
    else rank.first = waiter
    rank.last = waiter
    this.#count(rank, waiter, 1)
  }

  /**
   * Limits the wait by a deadline and a signal. The caller must call `setTimer` afterwards, unless the waiter leaves
   * before.
   * @param wait milliseconds; Infinity for none. @param deadline the end of the wait: clock time.
   */
  limit(waiter: W, wait: number, deadline: number, signal: AbortSignal | undefined): void {
    if (deadline === Infinity && !signal) return
    const letGo = signal && onAbort(signal, () => this.#owner.aborted(waiter, signal))
    waiter.waitLimit = { wait, signal, deadline, letGo }
    this.#limited++
    if (deadline !== Infinity) (this.#deadlines ??= new Deadlines()).add(waiter)
  }

  remove(waiter: W): void {
    const rank = waiter.rank!
    const { previous, next, waitLimit } = waiter
    if (previous) previous.next = next
    else rank.first = next
    if (next) next.previous = previous
    else rank.last = previous
    waiter.previous = waiter.next = waiter.rank = undefined
    this.#count(rank, waiter, -1)
    if (!rank.first && this.#ranks.length > 1) this.#ranks.splice(this.#ranks.indexOf(rank), 1)
    if (waitLimit) {
      waitLimit.letGo?.()
      if (waitLimit.deadline !== Infinity) this.#deadlines!.left()
      this.#limited--
    }
    if (this.callers === 0) this.#checkAt = Infinity
    if (this.#limited === 0 && this.#checkAt === Infinity) this.#cancelTimer()
  }

  /** Sets the owner's next check: clock time; Infinity for none. @param now clock time. */
  checkAt(time: number, now: number): void {
    this.#checkAt = time
    this.#setTimer(now)
  }

  /** Sets the timer, unless it is early enough for all deadlines. @param now clock time. */
  setTimer(now?: number): void {
    // A timer for a waiter that has left stays: a new timer for each would cost more than one unnecessary check.
    if (!this.#timer || this.earliestDeadline < this.#timerAt) this.#setTimer(now)
  }

  /** The earliest deadline of all waiters; Infinity if there is none. */
  get earliestDeadline(): number {
    return this.#deadlines?.earliest ?? Infinity
  }

  get mostUrgent(): W | undefined {
    return this.#deadlines?.first()
  }

  #rank(priority: number): Rank {
    const first = this.#ranks[0]!
    if (first.priority === priority) return first
    const rank = new Rank(priority)
    if (this.callers === 0) return (this.#ranks[0] = rank)
    const index = this.#ranks.findIndex(other => other.priority <= priority)
    const found = this.#ranks[index]
    if (found?.priority === priority) return found
    this.#ranks.splice(index === -1 ? this.#ranks.length : index, 0, rank)
    return rank
  }

  #count(rank: Rank, { n }: Waiter, sign: 1 | -1): void {
    rank.callers += sign
    rank.permits += sign * n
    this.callers += sign
    this.permits += sign * n
  }

  #setTimer(now?: number): void {
    const at = Math.min(this.#checkAt, this.earliestDeadline)
    const keepsAlive = this.callers > 0
    if (this.#timer && at === this.#timerAt && keepsAlive === this.#timerKeepsAlive) return
    this.#cancelTimer()
    // Some signals, such as those of `AbortSignal.timeout`, do not keep the process alive, so an endless timer does.
    if (at === Infinity && this.#limited === 0) return
    this.#timerAt = at
    this.#timerKeepsAlive = keepsAlive
    const delay = Math.max(at - (now ?? this.#clock.now()), MIN_DELAY)
    this.#timer = this.#clock.after(delay, () => this.#timeOver(), keepsAlive)
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }

  #timeOver(): void {
    const now = Math.max(this.#clock.now(), this.#timerAt)
    this.#cancelTimer()
    this.#checkAt = Infinity
    this.#owner.timeOver(now)
  }
}
