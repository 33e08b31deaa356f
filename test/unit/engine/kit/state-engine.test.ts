import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import { MemoryState } from '../../../../src/engine/kit/memory-state.js'
import { StateEngine, type EngineState, type Moment } from '../../../../src/engine/kit/state-engine.js'
import { memoryGuarantees } from '../../../../src/engines/memory/memory-engine.js'

/** An engine that knows when it decides to within ten milliseconds, as one with a clock far away does. */
class RoughEngine extends StateEngine {
  readonly name = 'rough:'
  readonly guarantees = memoryGuarantees
  readonly #state: MemoryState

  constructor(clock: VirtualClock) {
    super(clock)
    this.#state = new MemoryState(1, clock)
  }

  protected override transact<T>(work: (state: EngineState) => T): T {
    return work(this.#state)
  }

  protected override notify(): void {
    // There is no other session.
  }

  protected override moment(): Moment {
    return { now: 5000, wall: 5000, earliest: 90, latest: 100 }
  }
}

test('a pause is not shorter than was asked for, whenever within what is known it was decided', async () => {
  const engine = new RoughEngine(new VirtualClock(100))
  const listener = { wake: () => 0, lost: () => 0, contended: () => 0, reserved: () => 0 }
  const more = { changed: () => 0, missed: () => 0, ended: () => 0 }
  await engine.join({ session: 's', host: '', pid: 1, label: undefined }, { ...listener, ...more })
  const request = { limiter: 'api', session: 's', windows: [], units: [], horizon: 0, hold: 0, returns: [] }
  const { reserved } = await engine.reservePermits!({ ...request, pause: 500, explain: undefined })
  expect(reserved.pausedUntil).toBe(5510)
})
