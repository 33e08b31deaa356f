import { setTimeout } from 'node:timers/promises'
import type { Box, Grant } from 'signalbox'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'

/** The lease of a request that arrives late, in milliseconds. */
const LEASE = 60_000
/** Maximum wait of another box for the lock, in milliseconds. */
const FREED = 10_000
/** Time after which a box asks its engine before it passes a lease on, in milliseconds. */
const TURNS = 50

/** P8: a request that the network delivers after its repetition was granted and released. */
export function lateRequests(fixture: EngineFixture): void {
  describe('late requests', () => {
    const test = testOn(fixture)

    const ways: readonly (readonly [name: string, acquire: (box: Box) => Promise<Grant | undefined>])[] = [
      ['a caller that waits', box => box.mutex('key').acquire({ lease: LEASE, wait: '5s' })],
      ['a try', box => box.mutex('key').tryAcquire({ lease: LEASE })],
      ['a reader', box => box.readWriteLock('key').read.acquire({ lease: LEASE, wait: '5s' })],
    ]
    for (const [name, acquire] of ways)
      test(`${name}: the lock that a late request has taken is soon free`, async boxes => {
        const [box, network] = await boxes.overNetwork()
        const near = await boxes.open()
        await box.mutex('warm').run(() => undefined)
        const deliver = network.strand()
        // The box removes a request whose outcome is unclear.
        const grant = await acquire(box).catch(() => undefined)
        await grant?.release()
        await deliver()
        await near.mutex('key').run(() => undefined, { wait: FREED })
      })

    test('a lease that is passed on: the lock that a late request has taken is soon free', async boxes => {
      const [box, network] = await boxes.overNetwork()
      const near = await boxes.open()
      const first = await box.mutex('key').acquire({ lease: LEASE })
      const second = box.mutex('key').acquire({ lease: LEASE, wait: '5s' })
      await setTimeout(TURNS)
      const deliver = network.strand()
      await first.release().catch(() => undefined)
      await (await second.catch(() => undefined))?.release().catch(() => undefined)
      await deliver()
      await near.mutex('key').run(() => undefined, { wait: FREED })
    })
  })
}
