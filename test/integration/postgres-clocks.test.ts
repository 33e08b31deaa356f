import { expect, test } from 'vitest'
import { rising } from '../../packages/conformance/src/section.js'
import { pause, queued, soFar } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startPostgres } from '../support/servers/postgres.js'

const HOUR = 3_600_000
/** Lease of the renewed grants, in milliseconds. */
const LEASE = 1500

test('setting a server’s clock back lowers no token, ends no grant and blocks nobody', async () => {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  await using one = await open(server.url)
  await using other = await open(server.url)
  const limiter = one.limiter('api', { limit: 5, per: 500 })
  const store = one.store('s')
  await limiter.acquire(5)
  const before = await store.put('key', 0)
  const held = await one.mutex('key').acquire({ lease: LEASE })
  const pair = await other.mutex('a', 'b').acquire({ lease: LEASE })
  const asked = other.mutex('key').acquire({ lease: LEASE })
  await queued(one, 'key', 1)
  clock.set(-HOUR)
  // Each grant is renewed in the meantime.
  await pause(2 * LEASE)
  for (const grant of [held, pair]) grant.assertHeld()
  expect(await soFar(asked)).toBe('pending')
  for (const grant of [held, pair]) await grant.release()
  const tokens = [held.token, (await asked).token]
  await (await asked).release()
  for (const ahead of [-2 * HOUR, -HOUR, 0, -HOUR]) {
    clock.set(ahead)
    for (const box of [one, other]) {
      const grant = await box.mutex('key').acquire({ wait: '5s' })
      tokens.push(grant.token)
      await grant.release()
    }
    await limiter.acquire(5, { wait: '5s' })
    await store.transaction(['key'], tx => tx.put('key', tx.get<number>('key')! + 1))
  }
  expect(rising(tokens)).toBe(true)
  expect(await store.get('key')).toMatchObject({ value: 4 })
  expect((await store.get('key'))!.version).toBeGreaterThan(before)
})

test('setting a server’s clock again and again, by less than a lease tolerates, has no effect', async () => {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  await using one = await open(server.url)
  await using other = await open(server.url)
  const held = await one.mutex('held').acquire({ lease: LEASE })
  let ahead = 0
  const setting = setInterval(() => clock.set((ahead = ahead === 0 ? 300 : 0)), 50)
  const tokens: bigint[] = []
  const work = async (box: typeof one): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) {
      await box.mutex('key').run(grant => void tokens.push(grant.token), { wait: '20s' })
      await box.store('s').transaction(['sum'], tx => tx.put('sum', (tx.get<number>('sum') ?? 0) + 1))
    }
  }
  await Promise.all([one, other].map(work)).finally(() => clearInterval(setting))
  expect(tokens).toHaveLength(100)
  expect(rising(tokens)).toBe(true)
  expect((await one.store('s').get('sum'))!.value).toBe(100)
  held.assertHeld()
  await held.release()
})
