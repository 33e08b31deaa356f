import { onAbort } from './abort-task.js'
import type { Clock, Timer } from './clock.js'
import { Deadlines } from './deadlines.js'

/** A caller in a queue. Kept small, because there may be a hundred thousand. */
export class Waiter {
  previous: Waiter | undefined
  next: Waiter | undefined
  /** Its place in the queue; undefined once it has left. */
  rank: Rank | undefined
  /** What can end its wait before its turn, if anything. */
  waitLimit: WaitLimit | undefined

  /** @param n how many permits it wants; 1 for a lock. */
  constructor(readonly n: number) {}

  get isQueued(): boolean {
    return this.rank !== undefined
  }
}

/** What can end a wait. */
interface WaitLimit {
  readonly signal: AbortSignal | undefined
  /** Clock time; Infinity when there is none. */
  readonly deadline: number
  /** Stops listening to the signal. */
  readonly letGo: (() => void) | undefined
}

/** Waiters of one priority, first come, first served. */
class Rank {
  first: Waiter | undefined
  last: Waiter | undefined
  callers = 0
  permits = 0

  constructor(readonly priority: number) {}
}

/** Decides about the waiters of a queue. */
export interface WaitersOwner<W extends Waiter> {
  /**
   * The time of the next look or a deadline has come. Afterwards no timer is set.
   * @param now clock time, no earlier than what the timer was set for, although the clock may round it down.
   */
  timeOver(now: number): void
  /** A waiter's signal has aborted. */
  aborted(waiter: W, signal: AbortSignal): void
}

/** A shorter delay could be lost in rounding, in milliseconds. */
const MIN_DELAY = 0.001

/**
 * The queue of the local callers that wait for a lock or for permits: by priority, then in the order in which they
 * came. Entering and leaving cost the same at any place. However many wait, there is one timer, for the earliest
 * deadline or for the owner's next look. While callers wait, the timer keeps the process alive.
 */
export class Waiters<W extends Waiter> {
  readonly #clock: Clock
  readonly #owner: WaitersOwner<W>
  /** The greatest priority first. There is always one, and one without waiters is the only one. */
  readonly #ranks: Rank[] = [new Rank(0)]
  /** Made for the first waiter with a deadline. */
  #deadlines: Deadlines<W> | undefined
  /** How many waiters have a deadline or a signal. */
  #limited = 0
  /** The time of the owner's next look: clock time. */
  #lookAt = Infinity
  #timer: Timer | undefined
  #timerAt = Infinity
  #timerKeepsAlive = false
  /** How many callers wait. */
  callers = 0
  /** How many permits they wait for. */
  permits = 0

  constructor(clock: Clock, owner: WaitersOwner<W>) {
    this.#clock = clock
    this.#owner = owner
  }

  get first(): W | undefined {
    return this.#ranks[0]!.first as W | undefined
  }

  /** The waiter after another one. */
  after({ next, rank }: W): W | undefined {
    return (next ?? this.#ranks[this.#ranks.indexOf(rank!) + 1]?.first) as W | undefined
  }

  /** All waiters, in the order of their turns. The waiter that is looked at may be removed meanwhile. */
  *[Symbol.iterator](): Generator<W, void, void> {
    for (const rank of [...this.#ranks]) {
      for (let waiter = rank.first; waiter;) {
        const { next } = waiter
        yield waiter as W
        waiter = next
      }
    }
  }

  /** The waiters before a caller that comes now. */
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
   * Ends the wait at a time or when a signal aborts. A call of `setTimer` has to follow, unless the waiter leaves
   * before.
   * @param deadline clock time; Infinity for none.
   */
  limit(waiter: W, deadline: number, signal: AbortSignal | undefined): void {
    if (deadline === Infinity && !signal) return
    const letGo = signal && onAbort(signal, () => this.#owner.aborted(waiter, signal))
    waiter.waitLimit = { signal, deadline, letGo }
    this.#limited++
    if (deadline !== Infinity) (this.#deadlines ??= new Deadlines()).add(waiter)
  }

  /** Takes a waiter out. */
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
    if (this.callers === 0) this.#lookAt = Infinity
    if (this.#limited === 0 && this.#lookAt === Infinity) this.#cancelTimer()
  }

  /** Sets when the owner looks again: clock time; Infinity for no look. @param now clock time. */
  lookAt(time: number, now: number): void {
    this.#lookAt = time
    this.#setTimer(now)
  }

  /** Sets the timer unless it comes soon enough for all deadlines. @param now clock time. */
  setTimer(now?: number): void {
    // A timer for a waiter that has left is left as it is: setting it again for each would cost more than one look in
    // vain.
    if (!this.#timer || this.earliestDeadline < this.#timerAt) this.#setTimer(now)
  }

  /** The earliest deadline of all waiters; Infinity when there is none. */
  get earliestDeadline(): number {
    return this.#deadlines?.earliest ?? Infinity
  }

  /** The waiter with the earliest deadline. */
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
    const at = Math.min(this.#lookAt, this.earliestDeadline)
    const keepsAlive = this.callers > 0
    if (this.#timer && at === this.#timerAt && keepsAlive === this.#timerKeepsAlive) return
    this.#cancelTimer()
    // Some signals, such as those of `AbortSignal.timeout`, do not keep the process alive. So a timer without end does.
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
    this.#lookAt = Infinity
    this.#owner.timeOver(now)
  }
}
