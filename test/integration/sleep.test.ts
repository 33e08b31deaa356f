import { describe, expect, onTestFinished, test } from 'vitest'
import { place } from '../support/file/places.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startRedis } from '../support/servers/redis.js'

/** A lease, and a longer sleep, in milliseconds. */
const LEASE = 5000
const SLEEP = 8000
/** Longer than a test may take, in milliseconds. */
const LONG = 600_000
const HOUR = 3_600_000

/** Starts a server. @param clock the clock of the server; default: the real clock */
async function redis(clock?: FakeClock) {
  const server = await startRedis(clock ? { clock } : {})
  onTestFinished(() => server.stop())
  return server
}

/**
 * Opens a box on a machine that sleeps, and another on a second machine. The clock of their server continues in the
 * meantime.
 */
async function two() {
  const clock = new FakeClock()
  const { url } = await redis(clock)
  const here = place()
  const [holder, other] = await Promise.all([
    here.process(url, { environment: clock.environment }),
    here.process(url),
  ])
  return { clock, holder, other }
}

describe.runIf(process.platform === 'linux')('a machine that sleeps', () => {
  test('finds a grant lost at the first look when its lease was over meanwhile, while another holds', async () => {
    const { clock, holder, other } = await two()
    await holder.mutex('it', ['key'], { lease: LEASE, renew: false })
    await clock.sleep(SLEEP)
    await other.mutex('it', ['key'], { lease: LONG })
    await expect(holder.call('assertHeld', 'it')).rejects.toMatchObject({ code: 'LOST' })
    expect(await holder.call('expiresIn', 'it')).toBe(0)
    await expect(holder.release('it')).rejects.toMatchObject({ code: 'LOST' })
    await other.call('assertHeld', 'it')
  })

  test('aborts the signal of a grant soon after, although the timer of its deadline is far from due', async () => {
    const { clock, holder } = await two()
    await holder.mutex('it', ['key'], { lease: LONG, renew: false })
    const lost = holder.call('loss', 'it')
    await clock.sleep(LONG)
    expect(await lost).toBe('LOST')
  })

  test('admits no other box on the file engine while a grant is held, and one after it', async () => {
    const clock = new FakeClock()
    const here = place()
    const [holder, other] = await Promise.all(
      [1, 2].map(() => here.process(here.url, { environment: clock.environment })),
    )
    await holder!.mutex('it', ['key'], { lease: LEASE, renew: false })
    const waiting = other!.mutex('it', ['key'], { lease: LONG })
    await clock.sleep(SLEEP)
    await expect(holder!.call('assertHeld', 'it')).rejects.toMatchObject({ code: 'LOST' })
    await waiting
    // For the state that they share, a process that started after the sleep reads the same clock.
    const late = await here.process(here.url, { environment: clock.environment })
    await expect(late.mutex('it', ['key'], { wait: 1 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
    await other!.call('assertHeld', 'it')
  })
})

describe('a wall clock that is set', () => {
  test('does not shorten or lengthen a grant without a sleep', async () => {
    const clock = new FakeClock()
    const { url } = await redis()
    const here = place()
    const holder = await here.process(url, { environment: clock.environment })
    const asked = performance.now()
    await holder.mutex('it', ['key'], { lease: LONG, renew: false })
    const granted = performance.now()
    for (const ahead of [HOUR, -HOUR, 2 * LONG, 0]) {
      clock.set(ahead)
      const from = performance.now()
      const left = await holder.call('expiresIn', 'it')
      const to = performance.now()
      expect(left).toBeGreaterThanOrEqual(LONG - (to - asked))
      expect(left).toBeLessThanOrEqual(LONG - (from - granted))
    }
  })
})
