/** Limits of the concurrency. */
export interface QueueLimits {
  /** Maximum number of items of one train in a run. */
  readonly run: number
  /** Maximum number of concurrent runs. */
  readonly atOnce: number
}

/**
 * Keeps the order of each train's items: the next run of a train begins when its last one has ended. Runs of different
 * trains are concurrent. Trains without items take no memory.
 */
export class TrainQueues<Item> {
  readonly #work: (run: readonly Item[]) => Promise<void>
  readonly #limits: QueueLimits
  /** The waiting items of each train. */
  readonly #queues = new Map<string, Item[]>()
  /** Trains with items and without a run, the longest-waiting first. */
  readonly #ready = new Set<string>()
  #running = 0
  #fillScheduled = false
  readonly #idle: (() => void)[] = []

  /** @param work must not reject. */
  constructor(work: (run: readonly Item[]) => Promise<void>, limits: QueueLimits) {
    this.#work = work
    this.#limits = limits
  }

  /** Queues an item after the train's earlier ones. */
  add(train: string, item: Item): void {
    const queue = this.#queues.get(train)
    if (queue) queue.push(item)
    else {
      this.#queues.set(train, [item])
      this.#ready.add(train)
    }
    if (this.#fillScheduled) return
    this.#fillScheduled = true
    // A run gets all items of its train that are added in this tick.
    queueMicrotask(() => {
      this.#fillScheduled = false
      this.#fill()
    })
  }

  /** Resolves when no item runs or waits. */
  idle(): Promise<void> {
    if (this.#queues.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  #fill(): void {
    for (const train of this.#ready) {
      if (this.#running >= this.#limits.atOnce) return
      this.#ready.delete(train)
      void this.#run(train, this.#queues.get(train)!)
    }
  }

  async #run(train: string, queue: Item[]): Promise<void> {
    this.#running++
    await this.#work(queue.splice(0, this.#limits.run))
    this.#running--
    if (queue.length > 0) this.#ready.add(train)
    else this.#queues.delete(train)
    this.#fill()
    if (this.#queues.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
