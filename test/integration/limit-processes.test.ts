import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { open } from '../../src/index.js'
import { place } from '../support/file/places.js'
import { callService, isInOrder, jitterOf, mostWithin } from '../support/limits/service.js'
import { RedisPlace } from '../support/redis/place.js'

const LIMIT = 20
const PER = 1000
const JITTER = 100

/** Runs eight processes that call a service, and repeatedly stops one of them between reservation and use. */
async function keepTheBound(url: string): Promise<void> {
  const seen = await callService({
    url,
    options: { limit: LIMIT, per: PER, jitter: JITTER },
    processes: 8,
    tasks: 5,
    duration: 4000,
    stops: { processes: 1, stopped: 450, between: 300 },
  })
  const { arrivals, failures, stops } = seen
  expect(failures).toEqual([])
  expect(stops).toBeGreaterThan(3)
  expect(arrivals.length).toBeGreaterThan(LIMIT)
  const sent = arrivals.map(({ sentAt }) => sentAt)
  // A process may be preempted between its permit and its record of the call. `jitter` covers this delay, like that of
  // the network.
  expect(mostWithin(sent, PER)).toBeLessThanOrEqual(LIMIT)
  const received = arrivals.map(({ at }) => at)
  // The service itself may be late. It must not receive more calls than its delay explains.
  const late = Math.max(jitterOf(seen) - JITTER, 0)
  expect(mostWithin(received, PER - late)).toBeLessThanOrEqual(LIMIT)
  expect(isInOrder(seen)).toBe(true)
}

test.each(['files', 'Redis'])(
  'eight processes over %s stay within the limit, one of them stopped again and again',
  async engine => {
    await using here = engine === 'Redis' ? await RedisPlace.start() : undefined
    await keepTheBound(here?.server.url ?? place().url)
  },
)

test('a period over files continues after all boxes were closed', async () => {
  const { url } = place()
  const options = { limit: 3, per: '366d', window: 'calendar' } as const
  for (const left of [3, 2, 1, 0]) {
    await using box = await open(url)
    const limiter = box.limiter('yearly', options)
    expect((await limiter.explain()).limits[0]!.remaining).toBe(left)
    expect((await limiter.tryAcquire()) !== undefined).toBe(left > 0)
  }
})

test('a process stays alive for a caller whose signal aborts', async () => {
  const limits = fileURLToPath(new URL('../../dist/src/limits/index.js', import.meta.url))
  const program = `
    const { limiter } = await import(${JSON.stringify(limits)})
    const calls = limiter({ limit: 10, per: '1s', concurrency: 1 })
    await calls.acquire()
    await calls.acquire(1, { signal: AbortSignal.timeout(100) }).catch(({ code }) => console.log(code))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  expect(stdout).toBe('ABORTED\n')
})
