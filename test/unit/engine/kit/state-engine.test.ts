import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import type { Listener, SessionInfo } from '../../../../src/engine/contract.js'
import { MemoryState } from '../../../../src/engine/kit/memory-state.js'
import {
  StateEngine,
  type EngineState,
  type Hint,
  type Moment,
} from '../../../../src/engine/kit/state-engine.js'
import { memoryGuarantees } from '../../../../src/engines/memory/memory-engine.js'
import { lockRequest } from '../../../support/lock-request.js'
import { settled } from '../../../support/passing.js'

/** An engine that knows the time of its decisions to within ten milliseconds, like an engine with a distant clock. */
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
    // There are no other sessions.
  }

  protected override moment(): Moment {
    return { now: 5000, wall: 5000, earliest: 90, latest: 100 }
  }
}

test('a pause is at least as long as requested, despite an imprecise clock', async () => {
  const engine = new RoughEngine(new VirtualClock(100))
  const listener = { wake: () => 0, lost: () => 0, contended: () => 0, reserved: () => 0 }
  const more = { changed: () => 0, missed: () => 0, ended: () => 0 }
  await engine.join({ session: 's', host: '', pid: 1, label: undefined }, { ...listener, ...more })
  const request = { limiter: 'api', session: 's', windows: [], units: [], horizon: 0, hold: 0, returns: [] }
  const { reserved } = await engine.reservePermits!({ ...request, pause: 500, explain: undefined })
  expect(reserved.pausedUntil).toBe(5510)
})

/** An engine whose hints to other sessions stay under way until the test settles them. */
class DistantEngine extends StateEngine {
  readonly name = 'distant:'
  readonly guarantees = memoryGuarantees
  readonly sent: string[] = []
  arrived!: () => void
  readonly #state: MemoryState

  constructor(clock: VirtualClock, state: MemoryState) {
    super(clock)
    this.#state = state
  }

  protected override transact<T>(work: (state: EngineState) => T): T {
    return work(this.#state)
  }

  protected override notify(to: SessionInfo, { type, about }: Hint): Promise<void> {
    this.sent.push(`${type} ${about} to ${to.session}`)
    return new Promise(resolve => (this.arrived = resolve))
  }
}

test('a release is done when the wake-up is handed over, and its box sweeps the key after the claim window', async () => {
  const clock = new VirtualClock(100)
  const state = new MemoryState(1, clock)
  const reserved: string[] = []
  const join = async (session: string): Promise<DistantEngine> => {
    const engine = new DistantEngine(clock, state)
    const listener: Partial<Listener> = { reserved: key => void reserved.push(key) }
    await engine.join({ session, host: '', pid: 1, label: undefined }, listener as Listener)
    return engine
  }
  const ask = (engine: DistantEngine, id: string) => {
    const request = lockRequest(id, [{ key: 'key', mode: 'exclusive' }])
    return engine.submit({ type: 'enqueue', request, lease: 10_000, wait: 10_000 })
  }
  const engine = await join('a')
  const other = await join('b')
  const held = await ask(engine, 'a.1')
  if (held.state !== 'held') throw new Error(held.state)
  expect(await ask(other, 'b.1')).toMatchObject({ state: 'queued' })
  let isDone = false
  const request = lockRequest('a.1', [{ key: 'key', mode: 'exclusive' }])
  const release = engine.submit({ type: 'release', request, number: held.number })
  const done = Promise.resolve(release).then(() => (isDone = true))
  await settled()
  expect(engine.sent).toEqual(['wake b.1 to b'])
  expect(reserved).toEqual(['key'])
  expect(isDone).toBe(false)
  engine.arrived()
  await done
})
