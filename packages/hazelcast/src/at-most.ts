/** Runs a limited number of tasks at a time. The others wait in the order in which they came. */
export class AtMost {
  readonly #most: number
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** @param most maximum number of tasks that run at a time */
  constructor(most: number) {
    this.#most = most
  }

  /** Runs a task in its turn. Settles like it. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running++
    // A task that ends leaves its place to the first one that waits.
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }
}
