/** When a party has its next turn, in the time of {@link FairTurns}. */
export interface Turn {
  /** When its last turn ended. */
  begin: number
  /** When its next turn ends. */
  end: number
  /** Of turns that end at the same time, the one with the lower number comes first. */
  order: number
  /** Its place in the heap; -1 if it wants no turn. */
  place: number
  /** Its share in relation to those of others. */
  weight: number
  /** The number of equal parts of that share, of which it has one. */
  parts: number
}

export function noTurn(): Turn {
  return { begin: 0, end: 0, order: 0, place: -1, weight: 1, parts: 1 }
}

/** Somebody who takes turns. */
export interface Party {
  readonly turn: Turn
  /** The cost of its next turn; 0 if it wants none. */
  readonly cost: number
}

/**
 * Gives turns to parties so that each gets costs in proportion to its weight while it wants turns. One that wanted none
 * for a while gets no more for that later, so nothing is kept about it. New parties come after those that wait, so
 * that no number of them delays another one forever.
 *
 * This is self-clocked fair queueing (S. J. Golestani, A Self-Clocked Fair Queueing Scheme for Broadband Applications,
 * INFOCOM 1994): the turn of the smallest end comes first, and its end is the current time. A step takes O(log parties).
 */
export class FairTurns<P extends Party> {
  readonly #heap: P[] = []
  /** The end of the last turn. */
  time = 0
  #orders = 0

  get first(): P | undefined {
    return this.#heap[0]
  }

  /** All parties that want a turn, in no particular order. */
  get all(): readonly P[] {
    return this.#heap
  }

  /** Called when the cost of a party's next turn, or its weight, may have changed. */
  changed(party: P): void {
    const { turn, cost } = party
    if (cost === 0) return this.#remove(turn)
    if (turn.place === -1) {
      turn.begin = this.time
      turn.parts = 1
      turn.order = ++this.#orders
      turn.place = this.#heap.push(party) - 1
    }
    turn.end = turn.begin + (cost * turn.parts) / turn.weight
    this.#move(turn.place)
  }

  /** Called when a party has had a turn, before {@link changed}. */
  took({ turn }: P, cost: number): void {
    turn.begin += (cost * turn.parts) / turn.weight
    turn.order = ++this.#orders
    this.time = Math.max(this.time, turn.begin)
  }

  /** Returns turns that go on as these do, still without parties. */
  emptyCopy<Q extends Party>(): FairTurns<Q> {
    const copy = new FairTurns<Q>()
    copy.time = this.time
    copy.#orders = this.#orders
    return copy
  }

  /**
   * Returns the children of a party in the heap, whose turns do not come before its turn; undefined: returns the first
   * party.
   */
  after(party: P | undefined): readonly P[] {
    if (!party) return this.#heap.slice(0, 1)
    const { place } = party.turn
    return this.#heap.slice(2 * place + 1, 2 * place + 3)
  }

  /** Adds a party whose turn is a copy of that of a party of other turns. */
  addCopy(party: P): void {
    party.turn.place = this.#heap.push(party) - 1
    this.#move(party.turn.place)
  }

  #remove(turn: Turn): void {
    const { place } = turn
    if (place === -1) return
    turn.place = -1
    const last = this.#heap.pop()!
    if (place === this.#heap.length) return
    this.#put(last, place)
    this.#move(place)
  }

  /** Moves the party at a place up or down until the heap is in order. */
  #move(from: number): void {
    const heap = this.#heap
    const party = heap[from]!
    let place = from
    for (let up = (place - 1) >> 1; place > 0 && isBefore(party, heap[up]!); up = (place - 1) >> 1) {
      this.#put(heap[up]!, place)
      place = up
    }
    for (
      let down = this.#firstBelow(place);
      down && isBefore(heap[down]!, party);
      down = this.#firstBelow(place)
    ) {
      this.#put(heap[down]!, place)
      place = down
    }
    this.#put(party, place)
  }

  /** Returns the place of the first of the two parties below a place; 0 if there is none. */
  #firstBelow(place: number): number {
    const heap = this.#heap
    const left = 2 * place + 1
    if (left >= heap.length) return 0
    return left + 1 < heap.length && isBefore(heap[left + 1]!, heap[left]!) ? left + 1 : left
  }

  #put(party: P, place: number): void {
    this.#heap[place] = party
    party.turn.place = place
  }
}

function isBefore({ turn: one }: Party, { turn: other }: Party): boolean {
  return one.end < other.end || (one.end === other.end && one.order < other.order)
}
