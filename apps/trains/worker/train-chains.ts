/**
 * Keeps the order of each train's messages: those of one train run one after the other, those of different trains at
 * the same time. Nothing remains of a train whose messages are all done.
 */
export class TrainChains<Item> {
  readonly #work: (item: Item) => Promise<void>
  readonly #waiting = new Map<string, Item[]>()
  #idle: (() => void)[] = []

  /** @param work must not reject. */
  constructor(work: (item: Item) => Promise<void>) {
    this.#work = work
  }

  /** Runs the item as soon as the train's earlier ones are done. */
  add(train: string, item: Item): void {
    const waiting = this.#waiting.get(train)
    if (waiting) {
      waiting.push(item)
      return
    }
    this.#waiting.set(train, [])
    void this.#run(train, item)
  }

  /** Resolves when nothing runs and nothing waits. */
  idle(): Promise<void> {
    if (this.#waiting.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  async #run(train: string, first: Item): Promise<void> {
    await this.#work(first)
    for (let waiting = this.#take(train); waiting; waiting = this.#take(train)) {
      for (const item of waiting) await this.#work(item)
    }
    if (this.#waiting.size > 0) return
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  /** What has come meanwhile for the train; undefined, and the train forgotten, when that is nothing. */
  #take(train: string): readonly Item[] | undefined {
    const waiting = this.#waiting.get(train)
    if (!waiting || waiting.length === 0) {
      this.#waiting.delete(train)
      return undefined
    }
    this.#waiting.set(train, [])
    return waiting
  }
}
