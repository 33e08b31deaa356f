export interface QueueLimits {
  /** Maximum number of items in a run. */
  readonly run: number
  /** Maximum number of concurrent runs. */
  readonly atOnce: number
}

/**
 * Keeps the order of each train's items. A run has items of one or several trains, those of each train in their order.
 * The next run of a train begins when its last run has ended. Other runs are concurrent. Trains without items take no
 * memory.
 */
export class TrainQueues<Item> {
  readonly #work: (run: readonly Item[]) => Promise<void>
  readonly #limits: QueueLimits
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

  add(train: string, item: Item): void {
    const queue = this.#queues.get(train)
    if (queue) queue.push(item)
    else {
      this.#queues.set(train, [item])
      this.#ready.add(train)
    }
    if (this.#fillScheduled) return
    this.#fillScheduled = true
    // Starts runs after this tick, so that a run can get all items that are added in it.
    queueMicrotask(() => {
      this.#fillScheduled = false
      this.#fill()
    })
  }

  idle(): Promise<void> {
    if (this.#queues.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  #fill(): void {
    while (this.#ready.size > 0 && this.#running < this.#limits.atOnce) void this.#run()
  }

  async #run(): Promise<void> {
    const trains: string[] = []
    const run: Item[] = []
    for (const train of this.#ready) {
      if (run.length >= this.#limits.run) break
      this.#ready.delete(train)
      trains.push(train)
      run.push(...this.#queues.get(train)!.splice(0, this.#limits.run - run.length))
    }
    this.#running++
    await this.#work(run)
    this.#running--
    for (const train of trains) {
      if (this.#queues.get(train)!.length > 0) this.#ready.add(train)
      else this.#queues.delete(train)
    }
    this.#fill()
    if (this.#queues.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
