import type { Awaitable, Listener } from '../../src/engine/contract.js'

/** The distance between a box and an engine: questions, answers and hints take their time, each kind in its order. */
export class DistantLine {
  readonly #way: () => Promise<void>
  #lastQuestion: Promise<unknown> = Promise.resolve()
  #lastAnswer: Promise<unknown> = Promise.resolve()
  #lastHint: Promise<unknown> = Promise.resolve()

  /** @param way takes the time of one way. */
  constructor(way: () => Promise<void>) {
    this.#way = way
  }

  /** Executes a question at the other end, after those before it. The answer comes after those before it. */
  send<T>(execute: () => Awaitable<T>): Promise<T> {
    const carriedOut = this.#lastQuestion.then(() => this.#way()).then(execute)
    this.#lastQuestion = carriedOut.catch(() => undefined)
    const answer = this.#answered(carriedOut, this.#lastAnswer)
    this.#lastAnswer = answer.catch(() => undefined)
    return answer
  }

  /** Settles when all questions so far were executed. */
  async arrived(): Promise<void> {
    await this.#lastQuestion
  }

  /** A listener at the other end. @param isDeaf whether hints get lost. */
  hintsFor(listener: Listener, isDeaf = () => false): Listener {
    const later = (tell: () => void): void => {
      if (isDeaf()) return
      this.#lastHint = this.#lastHint.then(() => this.#way()).then(tell)
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

  async #answered<T>(carriedOut: Promise<T>, before: Promise<unknown>): Promise<T> {
    try {
      return await carriedOut
    } finally {
      await this.#way()
      await before
    }
  }
}
