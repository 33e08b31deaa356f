import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from 'signalbox/engine'
import { shiftWallClock } from 'signalbox-conformance'
import type { Counts } from '../history.js'
import type { FromClient, ToClient } from '../protocol.js'

/** A client's line to the harness. */
export class Link {
  isStopped = false
  #calls = 0
  readonly #answers = new Map<number, (counts: Counts) => void>()

  constructor() {
    process.on('message', (message: ToClient) => {
      if (message.order === 'stop') this.isStopped = true
      else if (message.order === 'shift clock') {
        shiftWallClock(message.ahead)
        this.report({ say: 'shifted', wall: Date.now() })
      } else this.#answers.get(message.call)?.(message.counts)
    })
    // Without the harness nothing that it does is written down.
    process.once('disconnect', () => process.exit(1))
  }

  /** A number for the next thing that is done. */
  nextCall(): number {
    return ++this.#calls
  }

  report(message: FromClient): void {
    process.send!(message)
  }

  /** Reports what happens just now. */
  reportNow(say: 'held' | 'leaving', call: number, at = systemClock.now()): void {
    this.report({ say, call, at })
  }

  /** Asks the resource; what a write is answered with are the counts after it. */
  ask(message: Extract<FromClient, { say: 'read' | 'write' }>): Promise<Counts> {
    return new Promise(resolve => {
      this.#answers.set(message.call, counts => {
        this.#answers.delete(message.call)
        resolve(counts)
      })
      this.report(message)
    })
  }

  /**
   * Repeats a task, `pause` milliseconds apart, until the harness says stop. What it throws is reported as an escape.
   */
  async repeat(pause: () => number, task: () => Promise<void>): Promise<void> {
    while (!this.isStopped) {
      try {
        await task()
      } catch (error) {
        this.report({ say: 'escaped', message: error instanceof Error ? String(error.stack) : String(error) })
      }
      await sleep(pause())
    }
  }
}
