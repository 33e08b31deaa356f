import type { History } from './history.js'
import type { Timeline } from './timeline.js'

/** A call for a lock, in the order of calls of its process. */
export interface Call {
  readonly line: string
  readonly place: number
}

interface Served {
  readonly place: number
  readonly step: number
}

/** Checks that callers of one process with equal claims are served in the order of their calls. */
export class TurnOrder {
  readonly #timeline: Timeline
  readonly #history: History
  readonly #last = new Map<string, Served>()
  #calls = 0

  constructor(timeline: Timeline, history: History) {
    this.#timeline = timeline
    this.#history = history
  }

  called(process: string, signature: string): Call {
    return { line: `${process} ${signature}`, place: ++this.#calls }
  }

  served({ line, place }: Call): void {
    const step = this.#timeline.steps
    const last = this.#last.get(line)
    // Several callers may be served within one step, and learn of it in any order.
    if (last && last.place > place && last.step < step)
      this.#history.violate('P4', `a caller of ${line} was served after one that called later`)
    if (!last || last.place < place) this.#last.set(line, { place, step })
  }
}
