import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { Starvation } from './starvation.js'

const EVERY = 10
const PAGE = Buffer.alloc(4096)

/**
 * Writes a page to the disk again and again, and records the longest delay. A busy disk, or a paused virtual machine,
 * stops the process that has the database in the same way.
 */
export class Standstills {
  /** The longest delay without the time for which this process had no processor, in milliseconds. */
  longest = 0
  readonly #descriptor: number
  #over = false

  private constructor(path: string) {
    this.#descriptor = openSync(path, 'w')
  }

  /** Starts to write, in a folder on the disk to watch. */
  static start(folder: string): Standstills {
    const standstills = new Standstills(join(folder, 'standstills'))
    void standstills.#watch()
    return standstills
  }

  stop(): void {
    this.#over = true
    closeSync(this.#descriptor)
  }

  async #watch(): Promise<void> {
    const starvation = new Starvation()
    for (;;) {
      const since = systemClock.now()
      const starved = starvation.exact(since)
      await pause(EVERY)
      if (this.#over) return
      writeSync(this.#descriptor, PAGE, 0, PAGE.length, 0)
      fdatasyncSync(this.#descriptor)
      const took = systemClock.now() - since
      this.longest = Math.max(this.longest, took - EVERY - (starvation.exact(since + took) - starved))
    }
  }
}
