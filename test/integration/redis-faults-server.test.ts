import type { Box } from '../../src/index.js'
import { describe, expect, test } from 'vitest'
import { Names } from '../../src/engines/redis/names.js'
import { open } from '../../src/open.js'
import { listed } from '../../packages/conformance/src/listing.js'
import { rising, Section } from '../../packages/conformance/src/section.js'
import { locks, pause, queued, soFar, until } from '../../packages/conformance/src/time.js'
import { codeOf, complaintOf } from '../support/redis/outcome.js'
import { RedisPlace } from '../support/redis/place.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startRedis } from '../support/servers/redis.js'

async function namesOf(limiters: ReturnType<Box['limiters']>): Promise<string[]> {
  const names = []
  for await (const { name } of limiters) names.push(name)
  return names
}

describe.concurrent('a server whose memory is full', () => {
  test('refuses writes that need more, and holders can renew and release', async () => {
    await using here = await RedisPlace.start({ config: ['maxmemory-policy noeviction'] })
    const { server } = here
    const [one, other, asking] = [await here.box(), await here.box(), await here.box()]
    const store = asking.store('s')
    await store.put('value', 'before')
    const lease = 1500
    const held = [
      await one.mutex('a').acquire({ lease }),
      await one.mutex('b', 'c').acquire({ lease }),
      await one.semaphore('d', { max: 2 }).acquire({ lease }),
      await one.readWriteLock('e').read.acquire({ lease }),
    ]
    const asked = other.mutex('a').acquire()
    await queued(one, 'a', 1)
    await server.command('SETRANGE', 'junk', 3_000_000, 'x')
    await server.command('CONFIG', 'SET', 'maxmemory', '2mb')
    // A box without renewals makes these calls, because Redis rejects no command of a script that has already written.
    const refused = [
      () => asking.mutex('new').acquire(),
      () => asking.mutex('new').tryAcquire(),
      () => asking.mutex('new', 'more').acquire(),
      () => asking.mutex('new').run(() => 'inside'),
      () => asking.semaphore('permits', { max: 1 }).acquire(),
      () => asking.readWriteLock('shared').read.acquire(),
      () => store.put('value', 'after'),
      () => store.transaction(['value'], transaction => transaction.put('value', 'after'), { id: 'one' }),
    ]
    for (const attempt of refused) expect(await complaintOf(attempt())).toMatch(/^UNAVAILABLE: .*OOM/)
    // The server does not reject all operations of one message together.
    const together = [asking.mutex('new').acquire(), store.get('value'), asking.mutex('a').tryAcquire()]
    expect(await Promise.all(together.map(codeOf))).toEqual(['UNAVAILABLE', undefined, undefined])
    await pause(2 * lease)
    for (const grant of held) grant.assertHeld()
    for (const grant of held) await grant.release()
    expect((await store.get('value'))!.value).toBe('before')
    await store.delete('value')
    expect(await store.get('value')).toBeUndefined()
    await server.command('CONFIG', 'SET', 'maxmemory', '64mb')
    const next = await asked
    expect(next.token).toBeGreaterThan(held[0]!.token)
    await next.release()
    expect(await locks(one)).toEqual([])
    await one.mutex('new', 'more').run(() => undefined)
  })
})

describe.concurrent('a server that may not be written to', () => {
  test('because it is a replica refuses reads and writes, and shows its locks', async () => {
    await using here = await RedisPlace.start()
    await using replica = await startRedis({ config: [`replicaof 127.0.0.1 ${here.server.port}`] })
    const one = await here.box()
    await one.store('s').put('key', 'value')
    const held = await one.mutex('held').acquire()
    await one.limiter('limit', { limit: 5, per: '1h' }).acquire()
    expect(await namesOf(one.limiters())).toEqual(['limit'])
    await here.server.copied()
    await using box = await open(replica.url)
    expect(await namesOf(box.limiters())).toEqual(['limit'])
    for (const attempt of [
      () => box.mutex('key').acquire(),
      () => box.mutex('key').tryAcquire(),
      () => box.mutex('key', 'more').run(() => 'inside'),
      () => box.semaphore('permits', { max: 1 }).acquire(),
      () => box.store('s').put('key', 'other'),
      () => box.store('s').transaction(['key'], transaction => transaction.put('key', 'other')),
    ]) {
      expect(await complaintOf(attempt())).toMatch(/^UNAVAILABLE: .*READONLY/)
      await until('it is connected again', async () => (await codeOf(locks(box))) === undefined)
    }
    // A replica may be behind, and a demoted master stays behind.
    expect(await complaintOf(box.store('s').get('key'))).toMatch(/^UNAVAILABLE: .*READONLY/)
    await until('it is connected again', async () => (await codeOf(locks(box))) === undefined)
    expect((await locks(box)).map(({ key }) => key)).toEqual(['held'])
    held.assertHeld()
    await held.release()
  })

  test('because it has too few replicas answers reads', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    await box.store('s').put('key', 'value')
    await box.limiter('limit', { limit: 5, per: '1h' }).acquire()
    await here.server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    expect((await box.store('s').get('key'))!.value).toBe('value')
    expect(await namesOf(box.limiters())).toEqual(['limit'])
    expect(await complaintOf(box.store('s').put('key', 'other'))).toMatch(/^UNAVAILABLE: .*NOREPLICAS/)
    expect(await complaintOf(box.mutex('key').acquire())).toMatch(/^UNAVAILABLE: .*NOREPLICAS/)
  })
})

describe.concurrent('code', () => {
  test.each([
    { what: 'functions', config: [], flush: ['FUNCTION', 'FLUSH'], loads: 'function|load' },
    {
      what: 'scripts',
      // Simulates a server without functions.
      config: ['rename-command FCALL ""'],
      flush: ['SCRIPT', 'FLUSH'],
      loads: 'eval',
    },
  ])(
    'of ours that is flushed over and over is loaded again, and each operation is done once: $what',
    async given => {
      const { config, flush, loads } = given
      await using here = await RedisPlace.start({ config })
      const boxes = await here.boxes(4)
      const section = new Section()
      const flushing = setInterval(() => void here.server.command(...flush), 5)
      await Promise.all(
        boxes.flatMap(box =>
          Array.from({ length: 4 }, async () => {
            for (let round = 0; round < 10; round++) {
              await box.mutex('key').run(grant => section.visit(grant))
              await box.store('s').transaction(['sum'], transaction => {
                transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1)
              })
            }
          }),
        ),
      )
      clearInterval(flushing)
      expect(section.most).toBe(1)
      expect(section.tokens).toHaveLength(160)
      expect(rising(section.tokens)).toBe(true)
      expect((await boxes[0]!.store('s').get('sum'))!.value).toBe(160)
      expect((await here.server.calls())[loads]).toBeGreaterThan(1)
    },
  )

  test('of others that runs forever gives a typed error, and nothing is lost once it is killed', async () => {
    await using here = await RedisPlace.start({ config: ['busy-reply-threshold 50'] })
    const [one, other] = [await here.box(), await here.box()]
    const held = await one.mutex('key').acquire({ lease: '20s' })
    const asked = other.mutex('key').acquire()
    await queued(one, 'key', 1)
    const foreign = await here.server.connection()
    const endless = complaintOf(foreign.command('EVAL', 'while true do end', 0))
    await until(
      'it is busy',
      async () => (await complaintOf(one.store('s').get('k')))?.includes('BUSY') ?? false,
    )
    expect(await complaintOf(one.mutex('k').tryAcquire())).toMatch(/^UNAVAILABLE: .*BUSY/)
    expect(await complaintOf(one.store('s').put('k', 1))).toMatch(/^UNAVAILABLE: .*BUSY/)
    await here.server.command('SCRIPT', 'KILL')
    expect(await endless).toMatch(/SCRIPT KILL/)
    held.assertHeld()
    await held.release()
    await (await asked).release()
    foreign.close()
  })
})

test('a wrong password gives a typed error without the password, at the beginning and later', async () => {
  await using here = await RedisPlace.start({ config: ['requirepass right'] })
  const url = here.server.url.replace('://', '://:right@')
  for (const wrong of [here.server.url, here.server.url.replace('://', '://:secret-but-wrong@')]) {
    const complaint = await complaintOf(open(wrong))
    expect(complaint).toMatch(/^UNAVAILABLE: .*(NOAUTH|WRONGPASS)/)
    expect(complaint).not.toContain('secret-but-wrong')
  }
  const box = await here.box(url)
  const held = await box.mutex('key').acquire({ lease: '60s' })
  const operator = await here.server.connection()
  await operator.command('AUTH', 'right')
  await operator.command('CONFIG', 'SET', 'requirepass', 'changed')
  await operator.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until(
    'it is refused',
    async () => (await complaintOf(box.store('s').get('k')))?.includes('WRONGPASS') ?? false,
  )
  expect(await complaintOf(box.mutex('other').tryAcquire())).toMatch(/^UNAVAILABLE: (?!.*right)/)
  await operator.command('CONFIG', 'SET', 'requirepass', 'right')
  await until('it is back', async () => (await codeOf(box.store('s').get('k'))) === undefined)
  held.assertHeld()
  await held.release()
  operator.close()
})

test("another program's data in place of a value is reported, and keeps no key locked", async () => {
  await using here = await RedisPlace.start()
  const { server } = here
  const [one, other] = [await here.box(), await here.box()]
  const store = one.store('s')
  const names = new Names('', false)
  const free = async (...keys: readonly string[]): Promise<void> => {
    for (const key of keys)
      expect(await other.mutex(`s/${key}`).run(() => 'free', { wait: '5s' })).toBe('free')
  }
  await store.put('good', 1)
  for (const [key, ...command] of [
    ['text', 'SET', 'hello'],
    ['nothing', 'SET', ''],
    ['json', 'SET', '{"a":1}'],
    ['number', 'SET', '12'],
    ['cut', 'SET', '12 {"a":'],
    ['hash', 'HSET', 'field', 'x'],
    ['list', 'RPUSH', 'x'],
  ] as const) {
    const name = names.value(`s/${key}`)
    await server.command(command[0], name, ...command.slice(1))
    const before = await server.command('DUMP', name)
    const told = {
      code: 'UNAVAILABLE',
      key: `s/${key}`,
      message: expect.stringContaining(`can't read the value of s/${key}`) as string,
    }
    await expect(store.get(key), key).rejects.toMatchObject(told)
    await expect(listed(store, { prefix: key }), key).rejects.toMatchObject(told)
    const both = (): Promise<unknown> =>
      store.transaction(['good', key], transaction => transaction.get(key), { lease: '60s' })
    await expect(both(), key).rejects.toMatchObject(told)
    await free('good', key)
    // A transaction that had to wait for its locks gets the same error.
    const held = await other.mutex(`s/${key}`).acquire()
    const asked = both()
    asked.catch(() => undefined)
    await queued(other, `s/${key}`, 1)
    await held.release()
    await expect(asked, key).rejects.toMatchObject(told)
    await free('good', key)
    if (key !== 'cut') {
      const unread = store.transaction([key], transaction => transaction.put(key, 1), { lease: '60s' })
      await expect(unread, key).rejects.toMatchObject(told)
      await free(key)
    }
    expect(await server.command('DUMP', name)).toEqual(before)
    await store.put(key, 'good again')
    expect(await store.get(key)).toMatchObject({ value: 'good again' })
  }
  await server.command('SET', names.ids('s/good'), 'hello')
  const known = store.transaction(['good'], transaction => transaction.put('good', 2), {
    id: 'one',
    lease: '60s',
  })
  await expect(known).rejects.toMatchObject({ code: 'UNAVAILABLE', key: 's/good' })
  await free('good')
})

test("of transactions that commit together only those with another program's data fail", async () => {
  await using here = await RedisPlace.start()
  const { server } = here
  const box = await here.box()
  const store = box.store('s', { group: { maxSize: 64, maxTime: 1000 } })
  const names = new Names('', false)
  await server.command('SET', names.value('s/text'), 'hello')
  await server.command('SET', names.value('s/far'), '9007199254740993 1')
  await server.command('HSET', names.value('s/hash'), 'field', 'x')
  await server.command('SET', names.ids('s/ids'), 'hello')
  const change = (key: string, id?: string): Promise<unknown> =>
    store.transaction([key], transaction => transaction.put(key, 'new'), id === undefined ? {} : { id })
  for (const spoiled of ['text', 'far', 'hash', 'ids']) {
    // The other transactions gather while the first one is running.
    const first = change('first')
    const good = ['a', 'b', 'c', 'd'].map(key => change(key, `${spoiled} ${key}`))
    const bad = change(spoiled, 'one')
    const later = ['e', 'f', 'a', 'b'].map(key => change(key))
    await expect(bad, spoiled).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      key: `s/${spoiled}`,
      message: expect.stringMatching(/another program has written to .*:(value|ids):s\//) as string,
    })
    await Promise.all([first, ...good, ...later])
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f'])
      expect(await store.get(key)).toMatchObject({ value: 'new' })
  }
})

test("another program's data in place of the lock table is reported with its key, and changes nothing", async () => {
  await using here = await RedisPlace.start()
  const { server } = here
  const [one, other] = [await here.box(), await here.box()]
  const { numbers, queues, requests } = new Names('', false).group('')
  const store = one.store('s')
  for (const [name, ...command] of [
    [numbers, 'SET', 'hello'],
    [numbers, 'SET', '9007199254740993'],
    [numbers, 'SET', 'nan'],
    [numbers, 'RPUSH', 'x'],
    [queues, 'SET', 'hello'],
    [queues, 'RPUSH', 'x'],
    [requests, 'SET', 'hello'],
  ] as const) {
    const title = `${name} ${command.join(' ')}`
    // The code reads the requests only if there are any.
    const reader = name === requests ? await other.readWriteLock('shared').read.acquire() : undefined
    await server.command('DEL', name)
    await server.command(command[0], name, ...command.slice(1))
    const before = await server.command('DUMP', name)
    const told = (key: string): object => ({
      code: 'UNAVAILABLE',
      key,
      message: expect.stringContaining(`another program has written to ${name}`) as string,
    })
    const simple = [() => one.mutex('key').acquire(), () => one.mutex('key').tryAcquire()]
    for (const attempt of [
      // These calls read no requests.
      ...(name === requests ? [] : simple),
      () => one.readWriteLock('key').read.run(() => 'inside'),
      () => one.semaphore('key', { max: 2 }).acquire(),
    ])
      await expect(attempt(), title).rejects.toMatchObject(told('key'))
    await expect(one.mutex('a', 'b').acquire(), title).rejects.toMatchObject(told('a, b'))
    if (name !== requests) await expect(store.put('k', 1), title).rejects.toMatchObject(told('s/k'))
    expect(await store.get('k')).toBeUndefined()
    expect(await server.command('KEYS', '[abk]*')).toEqual([])
    expect(await server.command('DUMP', name), title).toEqual(before)
    await server.command('DEL', numbers, queues, requests)
    await reader?.release().catch(() => undefined)
    expect(await other.mutex('key', 'a', 'b').run(() => 'free')).toBe('free')
  }
})

test('a lock can not have the name of an internal key', async () => {
  await using here = await RedisPlace.start()
  const { server } = here
  const names = new Names('app:', false)
  const { numbers, queues, requests } = names.group('')
  const taken = [numbers, queues, requests, names.value('s/k'), names.ids('s/k'), names.limit('1:l')]
  for (const [prefix, start] of [
    ['app:', 'app:'],
    ['', ''],
    // This prefix begins like the internal keys of another prefix.
    ['app:signalbox:', 'app:signalbox:'],
  ] as const) {
    const box = await here.box(`${server.url}?prefix=${prefix}`)
    for (const name of taken) {
      const key = name.slice(start.length)
      const told = { code: 'INVALID_ARGUMENT', key }
      await expect(box.mutex(key).acquire(), key).rejects.toMatchObject(told)
      await expect(box.mutex(key).tryAcquire(), key).rejects.toMatchObject(told)
      await expect(box.mutex('free', key).acquire(), key).rejects.toMatchObject(told)
      await expect(box.semaphore(key, { max: 2 }).acquire(), key).rejects.toMatchObject(told)
    }
    expect(await server.command('DBSIZE')).toBe(0)
    for (const key of ['signalbox', 'signalbox:2:{}:numbers', '{}:queues'])
      expect(await box.mutex(key).run(() => 'inside')).toBe('inside')
    await server.command('FLUSHALL')
  }
})

test('a server clock that is set back lowers no token and ends no grant', async () => {
  const clock = new FakeClock()
  await using here = await RedisPlace.start({ clock })
  const [one, other] = [await here.box(), await here.box()]
  const tokens: bigint[] = []
  const held = await one.mutex('key').acquire({ lease: 1500 })
  tokens.push(held.token)
  const asked = other.mutex('key').acquire({ lease: 1500 })
  await queued(one, 'key', 1)
  clock.set(-3_600_000)
  await pause(2500)
  held.assertHeld()
  expect(await soFar(asked)).toBe('pending')
  await held.release()
  const next = await asked
  tokens.push(next.token)
  for (const ahead of [-7_200_000, -3_600_000, 0]) {
    clock.set(ahead)
    await next.release()
    tokens.push((await one.mutex(`key ${ahead}`).acquire()).token)
  }
  expect(rising(tokens)).toBe(true)
})
