import { keepProcessAlive, letProcessEnd } from './keep-alive.js'
import type { WatchEvent } from './watch-event.js'

/** The events of a persistent watch, in order. A caller that waits for the next one keeps the process alive. */
export class WatchStream implements AsyncIterableIterator<WatchEvent> {
  /** Called when the caller wants no more events. */
  onReturn: () => void = () => undefined
  readonly #events: WatchEvent[] = []
  readonly #waiting: {
    resolve: (result: IteratorResult<WatchEvent>) => void
    reject: (error: Error) => void
  }[] = []
  #ended: { cause: Error | undefined } | undefined

  /** Adds an event. `ended` makes this and every later wait fail. */
  push(event: WatchEvent): void {
    if (this.#ended) return
    if (event.type === 'ended') return this.#end(event.cause)
    const waiting = this.#waiting.shift()
    if (!waiting) return void this.#events.push(event)
    letProcessEnd()
    waiting.resolve({ done: false, value: event })
  }

  /** Returns the next event. Rejects with the error that ended the session. */
  async next(): Promise<IteratorResult<WatchEvent>> {
    const event = this.#events.shift()
    if (event) return { done: false, value: event }
    if (this.#ended?.cause) throw this.#ended.cause
    if (this.#ended) return { done: true, value: undefined }
    keepProcessAlive()
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  /** Ends the watch. */
  async return(): Promise<IteratorResult<WatchEvent>> {
    if (!this.#ended) {
      this.#end(undefined)
      this.onReturn()
    }
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #end(cause: Error | undefined): void {
    this.#ended = { cause }
    for (const { resolve, reject } of this.#waiting.splice(0)) {
      letProcessEnd()
      if (cause) reject(cause)
      else resolve({ done: true, value: undefined })
    }
  }
}
