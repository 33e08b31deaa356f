/** How much goes on at the same time. */
export interface ChainLimits {
  /** So many trains at the most. */
  readonly trains: number
  /** So many items of one train, that follow each other, at the most. */
  readonly run: number
}

/**
 * Keeps the order of each train's messages: those of one train run one after the other, or some together as a run; those
 * of different trains at the same time, though not more than a given number. Nothing remains of a train whose messages
 * are all done.
 */
export class TrainChains<Item> {
  readonly #work: (run: readonly Item[]) => Promise<void>
  readonly #limits: ChainLimits
  /** What each train still has to do, without what runs. */
  readonly #waiting = new Map<string, Item[]>()
  /** Trains that have something to do and wait for their turn, from `#turn` on. */
  #ready: string[] = []
  #turn = 0
  #running = 0
  #idle: (() => void)[] = []

  /** @param work must not reject. */
  constructor(work: (run: readonly Item[]) => Promise<void>, limits: ChainLimits) {
    this.#work = work
    this.#limits = limits
  }

  /** Runs the item when the train's earlier ones are done and there is room. */
  add(train: string, item: Item): void {
    const waiting = this.#waiting.get(train)
    if (waiting) {
      waiting.push(item)
      return
    }
    this.#waiting.set(train, [item])
    this.#ready.push(train)
    this.#fill()
  }

  /** Resolves when nothing runs and nothing waits. */
  idle(): Promise<void> {
    if (this.#waiting.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  #fill(): void {
    while (this.#running < this.#limits.trains && this.#turn < this.#ready.length) {
      const train = this.#ready[this.#turn++]!
      // What had its turn is cut off now and then: each time would cost as much as all that still waits.
      if (this.#turn === this.#ready.length || this.#turn > this.#limits.trains) {
        this.#ready = this.#ready.slice(this.#turn)
        this.#turn = 0
      }
      this.#running++
      void this.#run(train)
    }
  }

  async #run(train: string): Promise<void> {
    const waiting = this.#waiting.get(train)!
    await this.#work(waiting.splice(0, this.#limits.run))
    this.#running--
    if (waiting.length > 0) this.#ready.push(train)
    else this.#waiting.delete(train)
    this.#fill()
    if (this.#waiting.size > 0) return
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}
