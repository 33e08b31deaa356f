import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from 'signalbox/engine'
import { shiftWallClock } from 'signalbox-conformance'
import type { Counts } from '../history.js'
import type { FromClient, ToClient } from '../protocol.js'

/** The connection of a client to the harness. */
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
    // Nothing records the client's actions without the harness.
    process.once('disconnect', () => process.exit(1))
  }

  /** Returns a number for the next action. */
  nextCall(): number {
    return ++this.#calls
  }

  report(message: FromClient): void {
    process.send!(message)
  }

  /** Reports an event at the current time. */
  reportNow(say: 'held' | 'leaving', call: number, at = systemClock.now()): void {
    this.report({ say, call, at })
  }

  /** Asks the resource. Resolves with the counts of a read; for a write, with the counts that the message contains. */
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
   * Repeats a task with a pause of `pause()` milliseconds, until the harness sends `stop`. Reports errors of the task
   * as escapes.
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
