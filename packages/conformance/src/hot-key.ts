import type { Box, Grant } from 'signalbox'
import { assert } from './assert.js'
import { rising, Section } from './section.js'
import { pause, until } from './time.js'

/** So many callers of each box want the key at once, so that each box always has one waiting. */
const CALLERS = 4

/** Callers of several boxes that take one lock over and over, until they are stopped. */
export class HotKey {
  readonly #section = new Section()
  /** How many turns each box has had. */
  readonly #turns: number[]
  readonly #callers: Promise<void>[]
  #isOver = false

  /** @param stay how long a turn takes: milliseconds */
  constructor(boxes: readonly Box[], stay = 1) {
    this.#turns = boxes.map(() => 0)
    this.#callers = boxes.flatMap((box, index) =>
      Array.from({ length: CALLERS }, async () => {
        while (!this.#isOver)
          await box.mutex('hot').run(async (grant: Grant) => {
            await this.#section.visit(grant, 1, stay)
            this.#turns[index]!++
          })
      }),
    )
    for (const caller of this.#callers) caller.catch(() => (this.#isOver = true))
  }

  /** How many turns each box has had until now. */
  get turns(): readonly number[] {
    return [...this.#turns]
  }

  /** How many turns each box gets within this time, from when each has had one, in milliseconds. */
  async shares(time: number): Promise<readonly number[]> {
    await until('each has had a turn', () => this.#isOver || this.#turns.every(count => count > 0))
    const before = this.turns
    await this.during(time)
    return this.turns.map((count, index) => count - before[index]!)
  }

  /** Lets them take turns for this long, or until one fails, in milliseconds. */
  async during(time: number): Promise<void> {
    const end = performance.now() + time
    while (performance.now() < end && !this.#isOver) await pause(50)
  }

  /**
   * Stops the callers.
   * @throws AssertionError when a caller failed, two were inside at once, or tokens did not rise
   */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#callers)
    assert.equal(this.#section.most, 1)
    assert.equal(rising(this.#section.tokens), true, 'tokens rise')
  }
}

/** The least number of turns that is half of a fair share for each box. */
export function halfShare(turns: readonly number[]): number {
  return turns.reduce((sum, count) => sum + count, 0) / turns.length / 2
}
