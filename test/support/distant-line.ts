import type { Awaitable, Listener } from '../../src/engine/contract.js'

/** Delays the requests, answers and hints between a box and an engine. Each kind keeps its order. */
export class DistantLine {
  readonly #way: () => Promise<void>
  #lastRequest: Promise<unknown> = Promise.resolve()
  #lastAnswer: Promise<unknown> = Promise.resolve()
  #lastHint: Promise<unknown> = Promise.resolve()

  /** @param way resolves after the delay of one way */
  constructor(way: () => Promise<void>) {
    this.#way = way
  }

  /** Executes a request at the other end, after earlier requests. Its answer arrives after earlier answers. */
  send<T>(execute: () => Awaitable<T>): Promise<T> {
    const executed = this.#lastRequest.then(() => this.#way()).then(execute)
    this.#lastRequest = executed.catch(() => undefined)
    const answer = this.#answered(executed, this.#lastAnswer)
    this.#lastAnswer = answer.catch(() => undefined)
    return answer
  }

  /** Settles when all requests so far have been executed. */
  async arrived(): Promise<void> {
    await this.#lastRequest
  }

  /** Returns a listener for the other end. @param isDeaf whether hints get lost */
  hintsFor(listener: Listener, isDeaf = () => false): Listener {
    const later = (notify: () => void): void => {
      if (isDeaf()) return
      this.#lastHint = this.#lastHint.then(() => this.#way()).then(notify)
    }
    return {
      wake: id => later(() => listener.wake(id)),
      lost: id => later(() => listener.lost(id)),
      contended: id => later(() => listener.contended(id)),
      reserved: key => later(() => listener.reserved(key)),
      changed: key => later(() => listener.changed(key)),
      missed: () => later(() => listener.missed()),
      ended: cause => later(() => listener.ended(cause)),
    }
  }

  async #answered<T>(executed: Promise<T>, before: Promise<unknown>): Promise<T> {
    try {
      return await executed
    } finally {
      await this.#way()
      await before
    }
  }
}
