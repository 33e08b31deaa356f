import { expect, test } from 'vitest'
import { CLAIM_WINDOW } from '../../src/engine/wait-times.js'
import { pause, timed } from '../../packages/conformance/src/time.js'
import { open, type Box } from '../../src/index.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { startPostgres } from '../support/servers/postgres.js'

const NEAR = 3
const FAR = 6
/** Duration of the contention, in milliseconds. */
const DURATION = 60_000
const LEASE = 10_000

interface Turn {
  readonly box: number
  /** Time of the request, by the clock of this process. */
  readonly asked: number
  readonly token: bigint
}

/** Acquires the key repeatedly with all boxes. @returns the turns in the order of their tokens */
async function contend(boxes: readonly Box[], duration: number): Promise<readonly Turn[]> {
  const turns: Turn[] = []
  const end = performance.now() + duration
  const callers = boxes.map(async (box, index) => {
    while (performance.now() < end) {
      const asked = performance.now()
      await box.mutex('hot').run(
        async grant => {
          await pause(2)
          grant.assertHeld()
          turns.push({ box: index, asked, token: grant.token })
        },
        { lease: LEASE },
      )
    }
  })
  await Promise.all(callers)
  return turns.sort((one, other) => (one.token < other.token ? -1 : 1))
}

/** Returns the turns that came after a turn requested more than `slack` milliseconds later. */
function overtaken(turns: readonly Turn[], slack: number): readonly Turn[] {
  let latest = -Infinity
  return turns.filter(({ asked }) => {
    const isOvertaken = latest > asked + slack
    latest = Math.max(latest, asked)
    return isOvertaken
  })
}

test.each([150, 400])(
  `${FAR} boxes at a round trip of %i ms and ${NEAR} near ones share one key in order of arrival`,
  async roundTrip => {
    await using server = await startPostgres()
    await using network = await Proxy.start(server.address.port)
    const far = server.url.replace(`:${server.address.port}`, `:${network.port}`)
    const urls = [...Array<string>(NEAR).fill(server.url), ...Array<string>(FAR).fill(far)]
    const boxes = await Promise.all(urls.map(url => open(url)))
    network.delay = roundTrip / 2
    // By now, each box has its connections.
    await Promise.all(boxes.map(box => box.mutex('hot').run(() => undefined)))
    const kept = await boxes.at(-1)!.mutex('kept').acquire({ lease: LEASE })
    const wanting = boxes[0]!.mutex('kept').acquire({ wait: '5m' })
    const turns = await contend(boxes, DURATION)
    kept.assertHeld()
    await kept.release()
    await (await wanting).release()
    network.delay = 0
    await Promise.all(boxes.map(box => box.close()))
    const counts = boxes.map((_, index) => turns.filter(({ box }) => box === index).length)
    // A request arrives half a round trip after it was sent.
    const late = overtaken(turns, roundTrip / 2 + 150)
    console.log({ roundTrip, counts, overtaken: late.length })
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(turns.length / boxes.length / 2)
    // A waiter loses its turn if this busy machine keeps it from checking in within the claim window.
    expect(CLAIM_WINDOW).toBeGreaterThan(roundTrip)
    expect(late.length).toBeLessThanOrEqual(turns.length / 100)
  },
)

test('a box at a round trip of 400 ms that was idle acquires a lock in one round trip', async () => {
  await using server = await startPostgres()
  await using network = await Proxy.start(server.address.port)
  await using box = await open(server.url.replace(`:${server.address.port}`, `:${network.port}`))
  await box.mutex('key').run(() => undefined)
  network.delay = 200
  // By default, pools end connections that are idle for 10 s.
  await pause(12_000)
  expect(await timed(() => box.mutex('key').acquire())).toBeLessThan(700)
  network.delay = 0
})
