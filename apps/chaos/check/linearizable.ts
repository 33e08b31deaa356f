/** A call between two times, and its effect on the state. */
export interface Operation<S> {
  readonly from: number
  /** Absent if the end is unknown: the call may take effect at any later time, or never. */
  readonly until?: number
  /** Returns the state after the call, or undefined if the call cannot have had its outcome in this state. */
  apply(state: S): S | undefined
}

export type Answer = 'yes' | 'no' | 'undecided'

/** Maximum number of steps before a search is abandoned. Every history of a run needs fewer. */
const MAX_STEPS = 2_000_000

interface Entry<S> {
  readonly operation: Operation<S>
  readonly index: number
  readonly at: number
  /** The end of a call. Undefined for an end, and for a call with an unknown end. */
  end: Entry<S> | undefined
  readonly isCall: boolean
  before: Entry<S>
  after: Entry<S>
}

/**
 * Whether there is an order of the operations that agrees with their times and explains all outcomes. This is the
 * search of Wing and Gong in Lowe's version: it removes placed operations from a list of calls and ends, and remembers
 * situations that it has tried.
 */
export function linearizable<S extends string | number>(
  initial: S,
  operations: readonly Operation<S>[],
): Answer {
  return new Search(initial, operations).run()
}

class Search<S extends string | number> {
  readonly #head: Entry<S>
  /** 1 for each operation that is placed. Operations with an unknown end come last. */
  readonly #placed: Uint8Array
  readonly #tried = new Set<string>()
  readonly #stack: { readonly entry: Entry<S>; readonly state: S; readonly low: number }[] = []
  #state: S
  /** All operations before this index are placed. */
  #low = 0
  /** The greatest index of an ended operation that was ever placed. */
  #high = 0
  /** Number of ended operations, and how many of them are not placed yet. */
  readonly #ended: number
  #left: number

  constructor(initial: S, operations: readonly Operation<S>[]) {
    const ended = operations.filter(({ until }) => until !== undefined).sort((a, b) => a.from - b.from)
    const open = operations.filter(({ until }) => until === undefined)
    this.#state = initial
    this.#ended = this.#left = ended.length
    this.#placed = new Uint8Array(operations.length)
    const entries = [...ended, ...open].flatMap((operation, index) => entriesOf(operation, index))
    // Calls come before ends of the same time, because such operations may have overlapped.
    entries.sort((a, b) => a.at - b.at || Number(b.isCall) - Number(a.isCall))
    this.#head = linked(entries)
  }

  run(): Answer {
    let entry = this.#head.after
    for (let steps = 0; this.#left > 0; steps++) {
      if (steps > MAX_STEPS) return 'undecided'
      if (entry.isCall && this.#place(entry)) entry = this.#head.after
      else if (entry.isCall) entry = entry.after
      else {
        // This operation has ended but is not placed, so an earlier choice was wrong.
        const last = this.#stack.pop()
        if (!last) return 'no'
        this.#takeBack(last)
        entry = last.entry.after
      }
    }
    return 'yes'
  }

  #place(entry: Entry<S>): boolean {
    const state = entry.operation.apply(this.#state)
    if (state === undefined) return false
    const low = this.#low
    this.#placed[entry.index] = 1
    while (this.#placed[this.#low] === 1) this.#low++
    if (entry.end) this.#high = Math.max(this.#high, entry.index)
    const known = this.#tried.size
    this.#tried.add(this.#situation(state))
    if (this.#tried.size === known) {
      this.#placed[entry.index] = 0
      this.#low = low
      return false
    }
    this.#stack.push({ entry, state: this.#state, low })
    this.#state = state
    if (entry.end) this.#left--
    for (const one of [entry, entry.end]) {
      if (!one) continue
      one.before.after = one.after
      one.after.before = one.before
    }
    return true
  }

  #takeBack({ entry, state, low }: { entry: Entry<S>; state: S; low: number }): void {
    this.#state = state
    this.#placed[entry.index] = 0
    this.#low = low
    if (entry.end) this.#left++
    for (const one of [entry.end, entry]) {
      if (!one) continue
      one.before.after = one
      one.after.before = one
    }
  }

  /** Describes the state and the placed operations. From equal descriptions, the search continues in the same way. */
  #situation(state: S): string {
    const beyond: number[] = []
    const note = (from: number, to: number): void => {
      for (let index = from; index < to; index++) if (this.#placed[index] === 1) beyond.push(index)
    }
    note(this.#low + 1, this.#high + 1)
    note(Math.max(this.#ended, this.#low + 1), this.#placed.length)
    return `${this.#low} ${beyond.join(' ')} ${state}`
  }
}

function entriesOf<S>(operation: Operation<S>, index: number): Entry<S>[] {
  const { from, until } = operation
  const call = { operation, index, at: from, isCall: true } as Entry<S>
  if (until === undefined) return [call]
  const end = { operation, index, at: until, isCall: false } as Entry<S>
  call.end = end
  return [call, end]
}

/**
 * Links the entries into a ring in their order. Returns the head, an end that precedes the first entry and follows the
 * last one.
 */
function linked<S>(entries: readonly Entry<S>[]): Entry<S> {
  const head = { isCall: false } as Entry<S>
  let last = head
  for (const entry of entries) {
    last.after = entry
    entry.before = last
    last = entry
  }
  last.after = head
  head.before = last
  return head
}
