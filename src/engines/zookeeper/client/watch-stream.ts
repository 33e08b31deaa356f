import type { WatchEvent } from './watch-event.js'

/** The events of a persistent watch, in order. Whoever waits for the next one keeps the process alive. */
export class WatchStream implements AsyncIterableIterator<WatchEvent> {
  /** Called when nobody wants to hear more. */
  onReturn: () => void = () => undefined
  readonly #awaits: (more: 1 | -1) => void
  readonly #events: WatchEvent[] = []
  readonly #waiting: {
    resolve: (result: IteratorResult<WatchEvent>) => void
    reject: (error: Error) => void
  }[] = []
  #ended: { cause: Error | undefined } | undefined

  constructor(awaits: (more: 1 | -1) => void) {
    this.#awaits = awaits
  }

  /** Tells an event; `ended` makes all who wait from then on fail. */
  push(event: WatchEvent): void {
    if (this.#ended) return
    if (event.type === 'ended') return this.#end(event.cause)
    const waiting = this.#waiting.shift()
    if (!waiting) return void this.#events.push(event)
    this.#awaits(-1)
    waiting.resolve({ done: false, value: event })
  }

  /** The next event; rejects with what ended the session. */
  async next(): Promise<IteratorResult<WatchEvent>> {
    const event = this.#events.shift()
    if (event) return { done: false, value: event }
    if (this.#ended?.cause) throw this.#ended.cause
    if (this.#ended) return { done: true, value: undefined }
    this.#awaits(1)
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
      this.#awaits(-1)
      if (cause) reject(cause)
      else resolve({ done: true, value: undefined })
    }
  }
}
