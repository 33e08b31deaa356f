import type { Box, Grant } from 'signalbox'
import { assert } from './assert.js'
import { rising, Section } from './section.js'
import { pause, until } from './time.js'

/** Number of callers of each box: enough that each box always has one waiting. */
const CALLERS = 4

/** Callers of several boxes that take one lock over and over, until they are stopped. */
export class HotKey {
  readonly #section = new Section()
  /** Number of turns of each box. */
  readonly #turns: number[]
  readonly #callers: Promise<void>[]
  #isOver = false

  /** @param stay duration of a turn, in milliseconds */
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

  /** Number of turns of each box until now. */
  get turns(): readonly number[] {
    return [...this.#turns]
  }

  /**
   * Waits until each box has had a turn, and then counts the turns of each for some time.
   * @param time milliseconds
   */
  async shares(time: number): Promise<readonly number[]> {
    await until('each has had a turn', () => this.#isOver || this.#turns.every(count => count > 0))
    const before = this.turns
    await this.during(time)
    return this.turns.map((count, index) => count - before[index]!)
  }

  /**
   * Lets the callers take turns for some time, or until one fails.
   * @param time milliseconds
   */
  async during(time: number): Promise<void> {
    const end = performance.now() + time
    while (performance.now() < end && !this.#isOver) await pause(50)
  }

  /**
   * Stops the callers.
   * @throws AssertionError when two were inside at once or tokens did not rise, and the error of a caller that failed
   */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#callers)
    assert.equal(this.#section.most, 1)
    assert.equal(rising(this.#section.tokens), true, 'tokens rise')
  }
}

/** Returns half of the fair share of a box. */
export function halfShare(turns: readonly number[]): number {
  return turns.reduce((sum, count) => sum + count, 0) / turns.length / 2
}
