import { constants } from 'node:os'
import { EXIT } from './exit-status.js'
import { EndedWith } from './failure.js'

/** What ends a program from outside. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Being asked to end, while there is something to be given back first. */
export class Interrupt implements Disposable {
  readonly #controller = new AbortController()
  readonly #listener = (name: NodeJS.Signals): void => this.#controller.abort(new Interrupted(name))

  constructor() {
    for (const name of ENDING) process.on(name, this.#listener)
  }

  /** Aborts with an {@link Interrupted}. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * Gives what the task gave, or throws an {@link Interrupted} when that failed because of the signal.
   * @throws what the task throws.
   */
  async during<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await task(this.signal)
    } catch (error) {
      this.signal.throwIfAborted()
      throw error
    }
  }

  /** Lets the signals do again what they do by themselves. */
  [Symbol.dispose](): void {
    for (const name of ENDING) process.off(name, this.#listener)
  }
}

/** The program was asked to end by a signal. */
class Interrupted extends EndedWith {
  constructor(signal: NodeJS.Signals) {
    super(EXIT.signal + constants.signals[signal])
  }
}
