import { expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { pass } from '../../support/passing.js'

/** Creates a box that has used both permits of a second and has three callers, two of them with a reservation. */
async function threeCallers() {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const newBox = (): DistantBox => new DistantBox(clock, server, 2, { limit: 2, per: 1000 })
  const box = newBox()
  void box.limiter.acquire(2)
  await pass(clock, 20)
  const controllers = [1, 2, 3].map(() => new AbortController())
  const given: number[] = []
  const come = (from: DistantBox, signal?: AbortSignal): void =>
    void from.limiter.acquire(1, { signal }).then(
      () => given.push(clock.now() - 5000),
      () => undefined,
    )
  for (const { signal } of controllers) come(box, signal)
  await pass(clock, 100)
  const leave = (caller: number): void => controllers[caller]!.abort()
  return { clock, box, newBox, given, come, leave }
}

test('a permit of a caller that gave up goes to another process, although its own waits for later ones', async () => {
  const { clock, newBox, given, come, leave } = await threeCallers()
  leave(0)
  leave(1)
  const other = newBox()
  come(other)
  await pass(clock, 990)
  expect(given).toHaveLength(2)
})

test.each([false, true])(
  'a caller that comes during a long call gets a permit that is reserved; after a decision: %s',
  async isAfterDecision => {
    const { clock, box, given, come, leave } = await threeCallers()
    box.jitter.answer = () => 3000
    leave(0)
    leave(1)
    await pass(clock, 10)
    leave(2)
    if (isAfterDecision) void box.limiter.decide()
    come(box)
    await pass(clock, 1000)
    expect(given).toHaveLength(1)
  },
)
