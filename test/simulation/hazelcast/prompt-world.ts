import { vi } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { PromptEntries, type PromptBox } from './prompt-entries.js'

/** The boxes of one test, their entries, and the clock, which also drives the wall clock and the members. */
export class PromptWorld {
  readonly clock = new VirtualClock()
  readonly entries = new PromptEntries(() => this.clock.now())
  readonly #open: PromptBox[] = []

  constructor() {
    vi.spyOn(Date, 'now').mockImplementation(() => 1_800_000_000_000 + Math.floor(this.clock.now()))
    // With this number, the boxes clean up before any of them seems dead.
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
  }

  box(name: string): PromptBox {
    const opened = this.entries.box(KeyOperations, name, this.clock)
    this.#open.push(opened)
    return opened
  }

  end(): void {
    for (const { operations } of this.#open) operations.end()
    vi.restoreAllMocks()
  }
}
