/** A call between two times, and what it does to the state. */
export interface Operation<S> {
  readonly from: number
  /** Absent: its end isn't known, so it may happen at any later time, or never. */
  readonly until?: number
  /** The state after it, or undefined when it can't have happened in this state with the outcome that it had. */
  apply(state: S): S | undefined
}

export type Answer = 'yes' | 'no' | 'undecided'

/** So many steps are enough for every history of a run; a search that takes more is given up. */
const MAX_STEPS = 2_000_000

interface Entry<S> {
  readonly operation: Operation<S>
  readonly index: number
  readonly at: number
  /** Of a call, its end; undefined for an end, and for a call whose end isn't known. */
  end: Entry<S> | undefined
  readonly isCall: boolean
  before: Entry<S>
  after: Entry<S>
}

/**
 * Whether there is an order of the operations that agrees with their times and in which each had the outcome that it
 * had: the search of Wing and Gong as Lowe has it, over a list of calls and ends from which what is placed is taken
 * out, and with a memory of what was tried.
 */
export function linearizable<S extends string | number>(
  initial: S,
  operations: readonly Operation<S>[],
): Answer {
  return new Search(initial, operations).run()
}

class Search<S extends string | number> {
  readonly #head: Entry<S>
  /** Which operations are placed; those whose end isn't known come last. */
  readonly #placed: Uint8Array
  readonly #tried = new Set<string>()
  readonly #stack: { readonly entry: Entry<S>; readonly state: S; readonly low: number }[] = []
  #state: S
  /** All before this index are placed. */
  #low = 0
  /** The last of those that ended which was ever placed. */
  #high = 0
  /** How many have ended, and how many of these are not placed. */
  readonly #ended: number
  #left: number

  constructor(initial: S, operations: readonly Operation<S>[]) {
    const ended = operations.filter(({ until }) => until !== undefined).sort((a, b) => a.from - b.from)
    const open = operations.filter(({ until }) => until === undefined)
    this.#state = initial
    this.#ended = this.#left = ended.length
    this.#placed = new Uint8Array(operations.length)
    const entries = [...ended, ...open].flatMap((operation, index) => entriesOf(operation, index))
    // What touches at one moment may have overlapped: calls come before ends.
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
        // This one has ended and is not placed: an earlier choice was wrong.
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

  /** The state and what is placed: a search that comes here twice finds the same rest. */
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
 * Links the entries in their order into a ring; returns what stands before the first and, as an end, after the last.
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
