import { noTurn, type Party } from './fair-turns.js'

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

export interface WaitLimit {
  /** Maximum wait, in milliseconds; Infinity for none. */
  readonly wait: number
  readonly signal: AbortSignal | undefined
  /** Clock time; Infinity for none. */
  readonly deadline: number
  readonly letGo: (() => void) | undefined
}

/** Whose turns a waiter takes. */
export interface Tenant {
  readonly name: string
  /** Its share in relation to those of the other tenants, or of those of its group. */
  readonly weight: number
  /** All tenants of a group share the turns of one. */
  readonly group: string | undefined
}

/** Numbers of callers, and of the permits that they want. */
export interface Counts {
  readonly callers: number
  readonly permits: number
}

/** The waiters of one priority in a lane. */
class Rank {
  first: Waiter | undefined
  last: Waiter | undefined
  callers = 0
  permits = 0

  constructor(
    readonly lane: Lane,
    readonly priority: number,
  ) {}
}

/**
 * Waiters by priority, then in order of arrival. The costs of entering and leaving do not depend on the place. In a
 * queue with tenants, each tenant has a lane.
 */
export class Lane implements Party, Counts {
  /** The greatest priority first. There is always a rank; an empty one is the only one. */
  readonly #ranks: Rank[] = [new Rank(this, 0)]
  readonly turn = noTurn()
  /** Undefined for callers without a tenant. */
  tenant: Tenant | undefined
  callers = 0
  permits = 0

  get first(): Waiter | undefined {
    return this.#ranks[0]!.first
  }

  get cost(): number {
    return this.first?.n ?? 0
  }

  after({ next, rank }: Waiter): Waiter | undefined {
    return next ?? this.#ranks[this.#ranks.indexOf(rank!) + 1]?.first
  }

  /** Counts the waiters ahead of a new caller. */
  before(priority: number): Counts {
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
    waiter.previous = rank.last
    if (rank.last) rank.last.next = waiter
    else rank.first = waiter
    rank.last = waiter
    this.#count(rank, waiter, 1)
  }

  remove(waiter: Waiter): void {
    const rank = waiter.rank!
    const { previous, next } = waiter
    if (previous) previous.next = next
    else rank.first = next
    if (next) next.previous = previous
    else rank.last = previous
    waiter.previous = waiter.next = waiter.rank = undefined
    this.#count(rank, waiter, -1)
    if (!rank.first && this.#ranks.length > 1) this.#ranks.splice(this.#ranks.indexOf(rank), 1)
  }

  #rank(priority: number): Rank {
    const first = this.#ranks[0]!
    if (first.priority === priority) return first
    const rank = new Rank(this, priority)
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
}
