interface Limited {
  readonly isQueued: boolean
  readonly waitLimit: { readonly deadline: number } | undefined
}

/** Minimum number of entries to sweep. */
const MIN_SWEPT = 64

/**
 * The deadlines of waiters in a binary heap, the earliest first. A waiter that has left the queue stays in the heap
 * until it is on top, or half of the entries have left. So leaving costs almost nothing.
 */
export class Deadlines<W extends Limited> {
  #heap: W[] = []
  #gone = 0

  add(waiter: W): void {
    const heap = this.#heap
    let index = heap.push(waiter) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (deadline(heap[parent]!) <= deadline(waiter)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = waiter
  }

  /** Called when a waiter has left the queue. */
  left(): void {
    this.#gone++
    if (this.#gone < MIN_SWEPT || 2 * this.#gone < this.#heap.length) return
    // A sorted array is a heap.
    this.#heap = this.#heap.filter(waiter => waiter.isQueued).sort((a, b) => deadline(a) - deadline(b))
    this.#gone = 0
  }

  /** The earliest deadline of all waiters; Infinity if there is none. */
  get earliest(): number {
    const waiter = this.first()
    return waiter ? deadline(waiter) : Infinity
  }

  first(): W | undefined {
    while (this.#heap.length > 0) {
      const waiter = this.#heap[0]!
      if (waiter.isQueued) return waiter
      this.#removeFirst()
      this.#gone--
    }
    return undefined
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()!
    const { length } = heap
    if (length === 0) return
    let index = 0
    while (true) {
      let child = 2 * index + 1
      if (child >= length) break
      if (child + 1 < length && deadline(heap[child + 1]!) < deadline(heap[child]!)) child++
      if (deadline(heap[child]!) >= deadline(last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
  }
}

function deadline({ waitLimit }: Limited): number {
  return waitLimit!.deadline
}
