import { afterAll, beforeAll, expect, test } from 'vitest'
import { pause } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { foreignMap } from '../support/hazelcast/foreign-map.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'

/** Maximum time of each wait, in milliseconds. Far more than it takes. */
const BOUND = 30_000

let server: HazelcastServer
let url: string

beforeAll(async () => {
  server = await startHazelcast()
  url = `hazelcast://${server.address}/${TEST_CLUSTER}`
})
afterAll(() => server.kill())

test('a box that waits for a key of another program keeps its first key for longer than its lease', async () => {
  const map = await foreignMap(server)
  await using box = await open(url)
  expect(await map.tryLock('kept b', 0)).toBe(true)
  const waiting = box.mutex('kept a', 'kept b').acquire({ lease: 3000 })
  // By then the attempt to lock both keys at once is over.
  await pause(500)
  // Without renewals, the member would have ended the lease by then.
  for (const end = performance.now() + 5500; performance.now() < end;) {
    expect(await map.isLocked('kept a')).toBe(true)
    await pause(20)
  }
  await map.unlock('kept b')
  await (await waiting).release()
})

test(
  'two programs that are inside for longer than a call is parked at first let a box in',
  { timeout: 2 * BOUND },
  async () => {
    const maps = [await foreignMap(server), await foreignMap(server)]
    const over = new AbortController()
    const programs = maps.map(async map => {
      while (!over.signal.aborted) {
        expect(await map.tryLock('slow', BOUND)).toBe(true)
        await pause(1200)
        await map.unlock('slow')
      }
    })
    await pause(100)
    await using box = await open(url)
    try {
      await box.mutex('slow').run(() => undefined, { wait: BOUND })
    } finally {
      over.abort()
      await Promise.all(programs)
    }
  },
)
