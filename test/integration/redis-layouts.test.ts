import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { LostError, open, type Grant } from '../../src/index.js'
import { pause, queued } from '../../packages/conformance/src/time.js'
import { startRedis } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'
import { lockRequest } from '../support/lock-request.js'

type Layout = 'string' | 'redisson'

const server = await startRedis()

afterAll(() => server.stop())

async function boxOf(layout: Layout): Promise<Box> {
  const box = await open(`${server.url}?layout=${layout}`)
  onTestFinished(() => box.close())
  return box
}

/** Collects messages on channels that match a pattern, as channel and text. */
async function heard(pattern: string): Promise<string[]> {
  const messages: string[] = []
  const client = new Redis(server.url)
  onTestFinished(() => client.disconnect())
  client.on('pmessage', (_, channel: string, text: string) => messages.push(`${channel} ${text}`))
  await client.psubscribe(pattern)
  return messages
}

/** Commands that create a key of each type, with other content than a lock's. */
const MAKING: Readonly<Record<string, readonly (string | number)[]>> = {
  string: ['SET', 'value'],
  hash: ['HSET', 'field', 'value'],
  list: ['RPUSH', 'value'],
  set: ['SADD', 'value'],
  zset: ['ZADD', 1, 'value'],
  stream: ['XADD', '1-1', 'field', 'value'],
}

async function make(type: string, key: string): Promise<void> {
  const [command, ...rest] = MAKING[type]!
  await server.command(command!, key, ...rest)
}

/** Replaces a key with one of another type. The key is never free in between. */
async function replace(type: string, key: string): Promise<void> {
  const [command, ...rest] = MAKING[type]!
  const script = "redis.call('DEL', KEYS[1]) return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"
  await server.command('EVAL', script, 1, key, command!, ...rest)
}

describe.each<[Layout, readonly string[], string]>([
  ['string', ['hash', 'list', 'set', 'zset', 'stream'], 'something else than a string'],
  ['redisson', ['string', 'list', 'set', 'zset', 'stream'], 'something else than a hash'],
])('in the layout %s', (layout, types, reason) => {
  test('a lock of another library can be stolen, which leaves nothing of its holder', async () => {
    const box = await boxOf(layout)
    const key = `stolen-${layout}`
    await make(layout === 'string' ? 'string' : 'hash', key)
    const waiting = box.mutex(key).acquire()
    const grant = await box.mutex(key).acquire({ steal: true })
    if (layout === 'redisson') expect(await server.command('HKEYS', key)).not.toContain('field')
    grant.assertHeld()
    expect(await box.mutex(key).tryAcquire()).toBeUndefined()
    await grant.release()
    await (await waiting).release()
    expect(await server.command('EXISTS', key)).toBe(0)
  })

  describe.each(types)('a key of type %s', type => {
    const expected = { name: 'UnavailableError', code: 'UNAVAILABLE' }

    test('gives a caller that wants it a clear error, and stays as it is', async () => {
      const box = await boxOf(layout)
      const key = randomUUID()
      await make(type, key)
      const before = await server.command('DUMP', key)
      const named = { ...expected, key, message: expect.stringContaining(reason) }
      await expect(box.mutex(key).tryAcquire()).rejects.toMatchObject(named)
      await expect(box.mutex(key).acquire()).rejects.toMatchObject(named)
      await expect(box.mutex(key).acquire({ wait: 20_000 })).rejects.toMatchObject(named)
      await expect(box.readWriteLock(key).read.acquire()).rejects.toMatchObject(named)
      await expect(box.semaphore(key, { max: 2 }).acquire()).rejects.toMatchObject(named)
      await expect(box.mutex(key).isLocked()).rejects.toMatchObject(expected)
      await expect(box.forceRelease(key, 1n)).rejects.toMatchObject(expected)
      await expect(box.mutex('free', key).acquire()).rejects.toMatchObject(expected)
      expect(await server.command('TYPE', key)).toBe(type)
      expect(await server.command('DUMP', key)).toBe(before)
      // The other key stays free, and the box still works.
      await (await box.mutex('free').acquire({ wait: 0 })).release()
      await server.command('DEL', key)
      await (await box.mutex(key).acquire({ wait: 0 })).release()
    })

    test('that replaces a held one is not deleted by its holder', async () => {
      const box = await boxOf(layout)
      const key = randomUUID()
      const grant = await box.mutex(key).acquire({ lease: 600 })
      await replace(type, key)
      // Renewals fail, so the box can't know whether it still holds the key.
      await until(() => grant.signal.aborted)
      await expect(grant.release()).rejects.toThrow(LostError)
      expect(await server.command('TYPE', key)).toBe(type)
      await server.command('DEL', key)
    })

    test('that comes while a caller waits ends the wait with that error', async () => {
      const box = await boxOf(layout)
      const other = await boxOf(layout)
      const key = randomUUID()
      const grant = await box.mutex(key).acquire({ lease: 60_000, renew: false })
      // The queue keeps the request for the length of a lease. Meanwhile, an operator can repair the key.
      const asked = other.mutex(key).acquire({ lease: 500 })
      asked.catch(() => undefined)
      await queued(box, key, 1)
      await replace(type, key)
      // A box checks again when its subscriptions are lost, so the test does not wait for the holder's lease to end.
      await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await expect(asked).rejects.toMatchObject(expected)
      await grant.release().catch(() => undefined)
      expect(await server.command('TYPE', key)).toBe(type)
      await server.command('DEL', key)
    })
  })
})

describe('the layout of Redisson', () => {
  test('is a hash with a count for the holder, as long as the lease, and nothing afterwards', async () => {
    const box = await boxOf('redisson')
    const grant = await box.mutex('form').acquire({ lease: 5000 })
    const [text, ...others] = await fieldsOf('form')
    expect(text).toMatch(/^signalbox=signalbox\/1 /)
    expect(others).toEqual([expect.stringMatching(new RegExp(`^${box.session}:\\d+=1$`))])
    const left = Number(await server.command('PTTL', 'form'))
    expect(left).toBeGreaterThan(3000)
    expect(left).toBeLessThanOrEqual(5000)
    await grant.release()
    expect(await server.command('EXISTS', 'form')).toBe(0)
  })

  test('is a hash for readers and permits, too, which names no owner', async () => {
    const box = await boxOf('redisson')
    const write = await box.readWriteLock('readers').write.acquire()
    await write.downgrade()
    const also = await box.readWriteLock('readers').read.acquire()
    const permit = await box.semaphore('permits', { max: 2 }).acquire()
    for (const key of ['readers', 'permits']) {
      expect(await fieldsOf(key)).toEqual([expect.stringMatching(/^signalbox=signalbox\/1 shared /)])
    }
    await write.release()
    expect(await server.command('EXISTS', 'readers')).toBe(1)
    await also.release()
    await permit.release()
    expect(await server.command('EXISTS', 'readers', 'permits')).toBe(0)
  })

  test.each(['unlocked', 'with {braces} in it', 'half {open'])(
    'a release of %j tells the waiters of RLock and RFairLock',
    async key => {
      const box = await boxOf('redisson')
      const name = key.includes('{') ? key : `{${key}}`
      const channel = `redisson_lock__channel:${name}`
      const past = Date.now() - 60_000
      const future = Date.now() + 60_000
      await server.command('RPUSH', `redisson_lock_queue:${name}`, 'dead:1', 'live:2', 'later:3')
      await server.command(
        'ZADD',
        `redisson_lock_timeout:${name}`,
        ...[past, 'dead:1', future, 'live:2', future, 'later:3'],
      )
      const grant = await box.mutex(key).acquire()
      const messages = await heard('redisson*')
      await grant.release()
      await until(() => messages.length === 3)
      expect(messages).toEqual([`${channel} 0`, `${channel}:dead:1 0`, `${channel}:live:2 0`])
      // Redisson's own clients maintain that list.
      expect(await server.command('LLEN', `redisson_lock_queue:${name}`)).toBe(3)
    },
  )

  test('an unlock message of Redisson wakes a waiter, which listens as long as it waits', async () => {
    const engine = await openRedis(`${server.url}?layout=redisson`)
    const session = randomUUID()
    const woken: string[] = []
    const nothing = (): void => undefined
    await engine.join(
      { session, host: 'host', pid: 1, label: undefined },
      {
        wake: id => woken.push(id),
        lost: nothing,
        contended: nothing,
        reserved: nothing,
        changed: nothing,
        missed: nothing,
        ended: nothing,
      },
    )
    onTestFinished(() => engine.leave())
    await server.command('HSET', 'theirs', `${randomUUID()}:1`, 1)
    const id = `${session}.1`
    const request = lockRequest(id, [{ key: 'theirs', mode: 'exclusive' }])
    const status = await engine.submit({ type: 'enqueue', request, lease: 60_000, wait: 60_000 })
    expect(status).toMatchObject({ state: 'queued', place: 1 })
    const listeners = async (): Promise<unknown> =>
      ((await server.command('PUBSUB', 'NUMSUB', 'redisson_lock__channel:{theirs}')) as unknown[])[1]
    await until(async () => (await listeners()) === 1)
    // The first wake-up comes when the subscription begins.
    await until(() => woken.length === 1)
    await server.command('DEL', 'theirs')
    await server.command('PUBLISH', 'redisson_lock__channel:{theirs}', '0')
    await until(() => woken.length === 2)
    expect(woken).toEqual([id, id])
    expect(await engine.submit({ type: 'checkIn', request, lease: 60_000, wait: 60_000 })).toMatchObject({
      state: 'held',
    })
    await until(async () => (await listeners()) === 0)
  })
})

test('behind a foreign holder the first waiter polls every 20 ms, and the others rarely', async () => {
  const key = 'looked at'
  await server.command('SET', key, 'foreign', 'PX', 60_000)
  const asked: Promise<Grant>[] = []
  for (let place = 1; place <= 6; place++) {
    const box = await boxOf('string')
    asked.push(box.mutex(key).acquire({ lease: 10_000 }))
    await queued(box, key, place)
  }
  const before = await server.calls()
  const from = performance.now()
  await pause(1500)
  const after = await server.calls()
  const passed = performance.now() - from
  const looks = (after['fcall'] ?? 0) - (before['fcall'] ?? 0)
  // Timers are late on a busy machine, but never early.
  expect(looks).toBeGreaterThan(0)
  expect(looks).toBeLessThanOrEqual(passed / 20 + 1 + 5 * (passed / 2000 + 1))
  await server.command('DEL', key)
  for (const each of asked) await (await each).release()
})

/** Returns the fields of a hash with their values, first that of Signalbox. */
async function fieldsOf(key: string): Promise<string[]> {
  const [...all] = (await server.command('HGETALL', key)) as string[]
  const fields: string[] = []
  while (all.length > 0) fields.push(all.splice(0, 2).join('='))
  return fields.sort(
    (one, other) => Number(other.startsWith('signalbox')) - Number(one.startsWith('signalbox')),
  )
}
