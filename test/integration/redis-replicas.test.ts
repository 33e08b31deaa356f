import { afterAll, beforeAll, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { pause, until } from '../../src/conformance/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

let master: RedisServer
let replica: RedisServer

beforeAll(async () => {
  master = await startRedis()
  replica = await startRedis({ config: [`replicaof 127.0.0.1 ${master.port}`] })
  await until('the replica follows', async () =>
    String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
  )
})

afterAll(async () => {
  await replica.kill()
  await master.kill()
})

test('what must be on a replica is there when it is granted or committed, and fails where no replica has it', async () => {
  await using box = await open(`${master.url}?minReplicas=1`)
  const store = box.store('s')
  for (let round = 0; round < 20; round++) {
    const grant = await box.mutex('key').acquire()
    expect(await replica.command('GET', 'key')).toContain('signalbox/1')
    await store.put('value', round)
    expect(await replica.command('GET', 'signalbox:1:{}:value:s/value')).toMatch(new RegExp(` ${round}$`))
    await grant.release()
  }
  replica.pause()
  try {
    const told = (key: string): object => ({
      code: 'INDETERMINATE',
      key,
      message: expect.stringMatching(`${key}.* 0 of 1 replicas`) as string,
    })
    // What nobody could miss is not held up by what travels with it.
    const read = store.get('value')
    await expect(box.mutex('key').acquire()).rejects.toMatchObject(told('key'))
    expect(await read).toMatchObject({ value: 19 })
    await expect(box.mutex('key', 'other').acquire()).rejects.toMatchObject(told('key, other'))
    await expect(store.put('value', 'unsure')).rejects.toMatchObject(told('s/value'))
    await expect(
      store.transaction(['value', 'more'], transaction => transaction.put('more', 1)),
    ).rejects.toMatchObject(told('s/more, s/value'))
    // It is given back in the background, so that nobody waits for a grant that nobody has.
    await until('the key is free', async () => (await master.command('EXISTS', 'key')) === 0)
  } finally {
    replica.resume()
  }
  await pause(100)
  await (await box.mutex('key').acquire({ wait: '10s' })).release()
})

test('a grant that a failover loses can be given twice, with a greater token; minReplicas gives none', async () => {
  await using old = await startRedis()
  await using network = await Proxy.start(old.port)
  await using next = await startRedis({ config: [`replicaof 127.0.0.1 ${network.port}`] })
  const follows = async (): Promise<boolean> =>
    String(await old.command('INFO', 'replication')).includes('state=online')
  await until('the replica follows', follows)
  await using one = await open(old.url)
  await using careful = await open(`${old.url}?minReplicas=1`)
  await (await careful.mutex('key').acquire()).release()
  await old.copied()
  network.replies = 'lose'
  const held = await one.mutex('key').acquire()
  await expect(careful.mutex('careful').acquire()).rejects.toMatchObject({ code: 'INDETERMINATE' })
  await next.command('REPLICAOF', 'NO', 'ONE')
  await using other = await open(next.url)
  const second = await other.mutex('key').acquire({ wait: 0 })
  held.assertHeld()
  second.assertHeld()
  expect(second.token).toBeGreaterThan(held.token)
  // Nobody holds what was not given.
  await (await other.mutex('careful').acquire({ wait: 0 })).release()
})

test('a lock that a failover lost never gives a lower token', async () => {
  await using box = await open(master.url)
  const grant = await box.mutex('promoted').acquire()
  await grant.release()
  await replica.command('REPLICAOF', 'NO', 'ONE')
  await using after = await open(replica.url)
  const later = await after.mutex('promoted').acquire()
  expect(later.token).toBeGreaterThan(grant.token)
})
