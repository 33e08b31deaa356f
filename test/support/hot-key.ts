import { expect } from 'vitest'
import type { Box } from '../../src/box.js'
import { pause } from '../../packages/conformance/src/time.js'
import { until } from './servers/until.js'

/** Tasks of a process that acquire one lock over and over, until `end` is called. */
export class HotKey {
  readonly tokens: bigint[] = []
  readonly #end = new AbortController()
  readonly #tasks: Promise<void>[]

  constructor(box: Box, inside: () => Promise<void> | void = () => undefined) {
    this.#tasks = Array.from({ length: 8 }, async () => {
      while (!this.#end.signal.aborted)
        await box.mutex('key').run(async ({ token }) => {
          this.tokens.push(token)
          await inside()
        })
    })
  }

  /** Maximum number of turns of one grant number. */
  get turns(): bigint {
    return this.tokens.reduce((most, token) => ((token & 1023n) > most ? token & 1023n : most), 0n)
  }

  /** Waits until the tasks get no more turns. Returns the number of turns until then. */
  async stalled(): Promise<number> {
    for (;;) {
      const before = this.tokens.length
      await pause(300)
      if (this.tokens.length === before) return before
    }
  }

  async end(): Promise<void> {
    this.#end.abort()
    await Promise.all(this.#tasks)
    const disorder = this.tokens.findIndex((token, index) => index > 0 && token <= this.tokens[index - 1]!)
    expect(disorder).toBe(-1)
  }
}

/**
 * Asserts that the tasks keep the key while only they want it, and that a request of another process is always next.
 */
export async function givesWay(hot: HotKey, other: Box): Promise<void> {
  const { tokens } = hot
  // One grant number has at most 16 turns if others may wait.
  await until(() => hot.turns > 16n)
  for (let round = 0; round < 20; round++) {
    const known = tokens.length
    const grant = await other.mutex('key').acquire()
    const last = tokens.at(-1)!
    await pause(5)
    // While it is held elsewhere no task is inside, and all tokens rise.
    expect(tokens.at(-1)).toBe(last)
    expect(grant.token).toBeGreaterThan(last)
    await grant.release()
    await until(() => tokens.length > known)
  }
}
