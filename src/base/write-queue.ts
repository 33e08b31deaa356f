import { IndeterminateError, UnavailableError } from './errors.js'

interface Turn {
  readonly begin: () => void
  readonly refuse: (cause: UnavailableError | IndeterminateError) => void
}

/**
 * Executes the writes of a key one after another. If they ran at the same time, each would find the key changed by
 * another one, and all but one would start over, again and again.
 */
export class WriteQueue {
  readonly #engine: string | undefined
  /** The writes that wait for the current one, by key. */
  readonly #waiting = new Map<string, Turn[]>()

  constructor(engine?: string) {
    this.#engine = engine
  }

  /**
   * Executes a write in its turn. If an earlier write meets an outage, the waiting ones are rejected; otherwise each
   * would wait for the end of the outage again.
   */
  async run<T>(key: string, write: () => Promise<T>): Promise<T> {
    await this.#turn(key)
    let outage: UnavailableError | IndeterminateError | undefined
    try {
      return await write()
    } catch (error) {
      if (error instanceof UnavailableError || error instanceof IndeterminateError) outage = error
      throw error
    } finally {
      this.#next(key, outage)
    }
  }

  #turn(key: string): Promise<void> | undefined {
    const waiting = this.#waiting.get(key)
    if (!waiting) {
      this.#waiting.set(key, [])
      return undefined
    }
    return new Promise((begin, reject) => {
      const refuse = (cause: Error): void =>
        reject(
          new UnavailableError(`a write before this one failed: ${cause.message}`, {
            key,
            engine: this.#engine,
            cause,
          }),
        )
      waiting.push({ begin, refuse })
    })
  }

  #next(key: string, outage: UnavailableError | IndeterminateError | undefined): void {
    const waiting = this.#waiting.get(key)!
    if (outage) for (const { refuse } of waiting.splice(0)) refuse(outage)
    const turn = waiting.shift()
    if (turn) turn.begin()
    else this.#waiting.delete(key)
  }
}
