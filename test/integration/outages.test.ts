import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { open } from '../../src/open.js'
import { until } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'

/** Leads as in the recipe of the README, and counts rounds and terms. */
async function leadOn(
  url: string,
  label: string,
  stop: AbortSignal,
): Promise<{ rounds: number; terms: number }> {
  const box = await open(url, { label })
  onTestFinished(() => box.close())
  const led = { rounds: 0, terms: 0 }
  const election = box.election('scheduler')
  const leading = election.lead(
    async grant => {
      led.terms++
      while (!stop.aborted) {
        led.rounds++
        await sleep(10, undefined, { signal: grant.signal })
      }
    },
    { again: true, lease: '2s', signal: stop },
  )
  leading.catch(() => undefined)
  return led
}

test('with `again` there is a leader again after the server was restarted', async () => {
  await using here = await RedisPlace.start()
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const fleet = await Promise.all(['one', 'other'].map(label => leadOn(here.server.url, label, stop.signal)))
  const rounds = (): number => fleet.reduce((sum, led) => sum + led.rounds, 0)
  await until('one leads', () => rounds() > 0)
  const before = fleet.map(({ terms }) => terms)
  // The server forgets the leader. Both become candidates again, and the old leader learns of its loss at its next
  // renewal.
  await here.server.restart()
  await until('one leads again', () => fleet.some(({ terms }, index) => terms > before[index]!))
  const led = rounds()
  await until('it goes on', () => rounds() > led)
})

test('a box says how its server is, and that it is back', async () => {
  await using here = await RedisPlace.start()
  const box = await here.box()
  expect(await box.ping()).toBeGreaterThan(0)
  expect(box.state).toMatchObject({ status: 'ready', reason: undefined })
  await here.server.stop()
  await expect(box.ping()).rejects.toMatchObject({
    code: expect.stringMatching(/UNAVAILABLE|INDETERMINATE/) as string,
  })
  expect(box.state).toMatchObject({ status: 'reconnecting', reason: { engine: here.server.url } })
  await here.server.start()
  await until('the box is ready', () => box.state.status === 'ready')
  await box.ping()
})

test('open waits for a server that starts later, and no longer than it is to', async () => {
  await using here = await RedisPlace.start()
  const { url } = here.server
  await here.server.stop()
  const since = performance.now()
  await expect(open(url, { wait: 600 })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(performance.now() - since).toBeGreaterThan(590)
  const opening = open(url, { wait: '1m' })
  await sleep(300)
  await here.server.start()
  const box = await opening
  await box.mutex('key').run(() => undefined)
  await box.close()
})
