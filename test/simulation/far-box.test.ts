import { expect, test } from 'vitest'
import { halfShare } from '../../packages/conformance/src/hot-key.js'
import type { Climate } from './climate.js'
import { sources } from './sources.js'
import { World } from './world.js'

/** Number of callers of each process that want the key at once. */
const CALLERS = 4
/** Duration of the contention, in virtual milliseconds. */
const TIME = 60_000

const near: Climate = {
  kind: 'calm',
  processes: 3,
  latency: 0.2,
  jitter: 0.2,
  spikes: 0,
  longestSpike: 0,
  lostRequests: 0,
  lostReplies: 0,
  refusals: 0,
  lostHints: 0,
  repeatedHints: 0,
  hintsInOrder: true,
  timeout: 5000,
  lateness: 0,
  leases: [],
  pace: 0,
  work: 1,
  detectDeadlocks: false,
}

const climates: readonly (readonly [name: string, far: Climate['far'] & object, more: Partial<Climate>])[] = [
  ['40 ms away', { latency: 20, jitter: 0 }, {}],
  ['150 ms away', { latency: 75, jitter: 0 }, {}],
  ['400 ms away', { latency: 200, jitter: 0 }, {}],
  ['whose messages take up to 500 ms longer', { latency: 0, jitter: 250 }, {}],
  ['40 ms away, while no hint arrives', { latency: 20, jitter: 0 }, { lostHints: 1 }],
]

/** Returns the number of turns of each process, the far one first. */
async function turnsIn(climate: Climate): Promise<number[]> {
  const world = new World(1, climate, sources)
  const { history, timeline } = world
  for (let place = 0; place < climate.processes; place++) world.start(place)
  const halted = (): boolean => history.violation !== undefined
  await timeline.run(2000, halted)
  const turns = world.places.map(() => 0)
  let inside = 0
  for (const [place, process] of world.places.entries()) {
    for (let caller = 0; caller < CALLERS; caller++) {
      world.do(process, 'takes turns', async () => {
        while (timeline.now < TIME)
          await process.box!.mutex('key').run(
            async grant => {
              if (++inside > 1) history.violate('P1', 'two are inside')
              await process.sleep(climate.work)
              grant.assertHeld()
              inside--
              turns[place]!++
            },
            { lease: 10_000 },
          )
      })
    }
  }
  await timeline.run(TIME + 30_000, halted)
  expect(history.violation).toBeUndefined()
  expect(world.tasks.map(({ what }) => what)).toEqual([])
  return turns
}

test.each(climates)('a box %s gets half of its fair share of a hot key', async (_, far, more) => {
  const turns = await turnsIn({ ...near, ...more, far })
  expect(turns[0]).toBeGreaterThanOrEqual(halfShare(turns))
})
