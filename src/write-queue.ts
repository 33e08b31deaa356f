import { IndeterminateError, UnavailableError } from './errors.js'

/** A write that waits for the one before it. */
interface Turn {
  readonly begin: () => void
  readonly refuse: (cause: UnavailableError | IndeterminateError) => void
}

/**
 * Lets the writes of one key go one after another. At once each would find the key changed by another one, and all but
 * one would need to start over, again and again.
 */
export class WriteQueue {
  readonly #engine: string | undefined
  /** Those that wait for the write that is under way, by key. */
  readonly #waiting = new Map<string, Turn[]>()

  /** @param engine for messages. */
  constructor(engine?: string) {
    this.#engine = engine
  }

  /**
   * Writes when it is this write's turn. When the one before it meets an outage, those that wait are refused: each
   * would otherwise wait it out again.
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
