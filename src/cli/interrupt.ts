import { constants } from 'node:os'
import { EXIT } from './exit-status.js'
import { EndedWith } from './failure.js'

const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Turns a signal that ends the program into an abort, so that locks are released first. */
export class Interrupt implements Disposable {
  readonly #controller = new AbortController()
  /** Aborts with an {@link EndedWith}. */
  readonly signal = this.#controller.signal
  readonly #listener = (name: NodeJS.Signals): void =>
    this.#controller.abort(new EndedWith(EXIT.signal + constants.signals[name]))

  constructor() {
    for (const name of ENDING) process.on(name, this.#listener)
  }

  /** Returns the task's result, or throws an {@link EndedWith} if the task failed after the signal. */
  async during<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await task(this.signal)
    } catch (error) {
      this.signal.throwIfAborted()
      throw error
    }
  }

  [Symbol.dispose](): void {
    for (const name of ENDING) process.off(name, this.#listener)
  }
}
