import type { Permit } from '../permit.js'

/** A caller that waits. Kept small, because there may be a hundred thousand. */
export class Waiter {
  previous: Waiter | undefined
  next: Waiter | undefined
  /** Its place in the queue; undefined once it has left. */
  rank: Rank | undefined
  /** What can end its wait before its turn, if anything. */
  patience: Patience | undefined

  /**
   * @param settle of the caller's promise. Only this one of a promise's two functions is kept: a rejection is passed to
   * it as a promise.
   */
  constructor(
    readonly n: number,
    /** When it came, among the callers of all threads; 0 where there is one thread. */
    readonly arrival: number,
    readonly settle: (outcome: Permit | Promise<Permit>) => void,
  ) {}
}

/** What can end a wait. */
export interface Patience {
  readonly signal: AbortSignal | undefined
  /** Clock time. */
  readonly deadline: number
}

/** Waiters of one priority, first come, first served. */
class Rank {
  head: Waiter | undefined
  tail: Waiter | undefined
  callers = 0
  permits = 0

  constructor(readonly priority: number) {}
}

/**
 * The callers that wait for permits: by priority, then in call order. Entering and leaving cost the same at any place.
 */
export class WaitingLine {
  /** The greatest priority first; none is empty. */
  readonly #ranks: Rank[] = []
  /** How many callers wait. */
  callers = 0
  /** How many permits they wait for. */
  permits = 0

  get head(): Waiter | undefined {
    return this.#ranks.length === 0 ? undefined : this.#ranks[0]!.head
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

  add(waiter: Waiter, priority: number): void {
    const rank = this.#rank(priority)
    waiter.rank = rank
    waiter.previous = rank.tail
    if (rank.tail) rank.tail.next = waiter
    else rank.head = waiter
    rank.tail = waiter
    this.#count(rank, waiter, 1)
  }

  remove(waiter: Waiter): void {
    const rank = waiter.rank!
    const { previous, next } = waiter
    if (previous) previous.next = next
    else rank.head = next
    if (next) next.previous = previous
    else rank.tail = previous
    waiter.previous = waiter.next = waiter.rank = undefined
    this.#count(rank, waiter, -1)
    if (!rank.head) this.#ranks.splice(this.#ranks.indexOf(rank), 1)
  }

  /** The waiter after another one. */
  after({ next, rank }: Waiter): Waiter | undefined {
    return next ?? this.#ranks[this.#ranks.indexOf(rank!) + 1]?.head
  }

  /** All waiters, in the order of their turns. The waiter that is looked at may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Waiter, void, void> {
    for (const rank of [...this.#ranks]) {
      for (let waiter = rank.head; waiter;) {
        const { next } = waiter
        yield waiter
        waiter = next
      }
    }
  }

  #rank(priority: number): Rank {
    const first = this.#ranks[0]
    if (first?.priority === priority) return first
    const index = this.#ranks.findIndex(rank => rank.priority <= priority)
    const found = this.#ranks[index]
    if (found?.priority === priority) return found
    const rank = new Rank(priority)
    this.#ranks.splice(index === -1 ? this.#ranks.length : index, 0, rank)
    return rank
  }

  #count(rank: Rank, { n }: Waiter, sign: 1 | -1): void {
    rank.callers += sign
    rank.permits += sign * n
    this.callers += sign
    this.permits += sign * n
  }
}
