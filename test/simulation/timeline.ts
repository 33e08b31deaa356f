/** An event at a virtual time. */
export interface Moment {
  readonly at: number
  readonly order: number
  /** Undefined once it has run or was cancelled. */
  task: (() => void) | undefined
  /** Whether its task settles no promise, so that the timeline need not wait after it. */
  readonly quiet: boolean
}

/** The common virtual time. Due tasks run one by one, in order of time, then of planning. */
export class Timeline {
  now = 0
  /** Number of tasks that have run. */
  steps = 0
  readonly #heap: Moment[] = []
  #planned = 0

  /** Plans a task. A time in the past means now. */
  at(time: number, task: () => void, quiet = false): Moment {
    const moment = { at: Math.max(time, this.now), order: this.#planned++, task, quiet }
    this.#push(moment)
    return moment
  }

  /**
   * Runs the tasks that are due until then. After each task, it waits until the reactions of all settled promises have
   * run: the runtime empties the microtask queue before the next immediate.
   */
  async run(until: number, halted: () => boolean): Promise<void> {
    await settled()
    while (!halted()) {
      const next = this.#heap[0]
      if (!next || next.at > until) {
        this.now = Math.max(this.now, until)
        return
      }
      this.#pop()
      const { task } = next
      if (!task) continue
      next.task = undefined
      this.now = next.at
      this.steps++
      task()
      if (!next.quiet) await settled()
    }
  }

  #push(moment: Moment): void {
    const heap = this.#heap
    let place = heap.length
    heap.push(moment)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!before(moment, heap[parent]!)) break
      heap[place] = heap[parent]!
      place = parent
    }
    heap[place] = moment
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (!before(heap[child]!, last)) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = last
  }
}

/** Settles when every promise that can continue has done so. */
function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

function before(one: Moment, other: Moment): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}
