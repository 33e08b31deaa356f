import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/index.js'
import { open } from '../../src/open.js'
import { NoAuthError, PERMISSIONS, ZooKeeper } from 'signalbox-zookeeper'
import { locks } from '../../packages/conformance/src/time.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'

type Permission = keyof typeof PERMISSIONS

/** Returns an ACL of a node with permissions for every client, including its creator. */
const only = (...permissions: Permission[]) => [
  {
    permissions: permissions.reduce((sum, name) => sum | PERMISSIONS[name], 0),
    scheme: 'world',
    id: 'anyone',
  },
]

/** Returns the number of requests that the server has received. */
async function packets(server: ZooKeeperServer): Promise<number> {
  return Number(/^zk_packets_received\t(\d+)$/m.exec(await server.say('mntr'))![1])
}

const NOT_ALLOWED = { code: 'UNAVAILABLE', cause: expect.any(NoAuthError) as unknown }

describe('an operation that the ACL of a node does not permit', () => {
  let server: ZooKeeperServer
  let admin: ZooKeeper
  let places = 0

  beforeAll(async () => {
    server = await startZooKeeper()
    admin = await ZooKeeper.connect(server.address)
  })
  afterAll(async () => {
    await admin.close()
    await server.kill()
  })

  /** Opens a box below a new node, in which others own `path`. */
  async function boxBeside(path: string, ...permissions: Permission[]): Promise<Box> {
    const place = `/place-${++places}`
    const box = await open(`zookeeper://${server.address}${place}`)
    await admin.create(place + path, '', { acl: only(...permissions) })
    return box
  }

  test('is reported when the box is opened, if it is the box’s first one', async () => {
    await admin.create('/closed', '', { acl: only('read') })
    await expect(open(`zookeeper://${server.address}/closed`)).rejects.toMatchObject(NOT_ALLOWED)
    await expect(open(`zookeeper://${server.address}/closed/below`)).rejects.toMatchObject(NOT_ALLOWED)
  })

  test('is reported only to callers for that key, if it joins a queue', async () => {
    await using box = await boxBeside('/locks/key', 'read', 'write', 'delete')
    for (const verb of ['acquire', 'tryAcquire'] as const) {
      const [refused, granted] = await Promise.allSettled([
        box.mutex('key')[verb](),
        box.mutex('other')[verb](),
      ])
      expect(refused).toMatchObject({ status: 'rejected', reason: NOT_ALLOWED })
      expect(granted.status).toBe('fulfilled')
      if (granted.status === 'fulfilled') await granted.value!.release()
      await expect(box.mutex('key', 'other')[verb]()).rejects.toMatchObject(NOT_ALLOWED)
    }
    expect(await locks(box)).toEqual([])
  })

  test('is reported if it leaves a queue, and the nodes are deleted with the box', async () => {
    await using box = await boxBeside('/locks/key', 'read', 'write', 'create')
    const path = `/place-${places}`
    const grant = await box.mutex('key').acquire()
    await using other = await open(`zookeeper://${server.address}${path}`)
    await expect(other.mutex('key').tryAcquire()).rejects.toMatchObject(NOT_ALLOWED)
    await expect(other.forceRelease('key', grant.token)).rejects.toMatchObject(NOT_ALLOWED)
    await expect(grant.release()).rejects.toMatchObject(NOT_ALLOWED)
    expect(() => grant.assertHeld()).toThrow()
    await box.close()
    await other.close()
    expect((await admin.getChildren(`${path}/locks/key`, { linearizable: true })).children).toEqual([])
  })

  test('is reported if it writes a value, and the lock is released', async () => {
    const place = `/place-${++places}`
    await using box = await open(`zookeeper://${server.address}${place}`)
    const store = box.store('s')
    await store.put('key', 'theirs')
    await admin.setAcl(`${place}/store/s%2Fkey`, only('read', 'admin'))
    const refused = await Promise.allSettled([store.put('key', 1), store.put('key', 2), store.delete('key')])
    for (const one of refused) expect(one).toMatchObject({ status: 'rejected', reason: NOT_ALLOWED })
    const writing = store.transaction(['key', 'other'], tx => tx.put('key', 1))
    await expect(writing).rejects.toMatchObject(NOT_ALLOWED)
    expect(await locks(box)).toEqual([])
    await store.transaction(['key', 'other'], tx => tx.put('other', tx.get('key')))
    expect((await store.get('other'))!.value).toBe('theirs')
    await admin.setAcl(`${place}/store/s%2Fkey`, only('write', 'admin'))
    await expect(store.get('key')).rejects.toMatchObject(NOT_ALLOWED)
  })
})

describe('a request that is too long', () => {
  test('for a server with a lower limit is reported, and the box continues', async () => {
    await using server = await startZooKeeper({ properties: { 'jute.maxbuffer': '20000' } })
    await using box = await open(`zookeeper://${server.address}/place`)
    const store = box.store('s')
    const long = 'x'.repeat(30_000)
    const unavailable = { code: 'UNAVAILABLE', message: expect.stringContaining('jute.maxbuffer') as unknown }
    await expect(store.put('key', long)).rejects.toMatchObject(unavailable)
    const writing = store.transaction(['key'], tx => tx.put('key', long))
    await expect(writing).rejects.toMatchObject(unavailable)
    const keys = Array.from({ length: 500 }, (_, index) => `key ${index}`)
    const before = await packets(server)
    await expect(box.mutex(...keys).acquire()).rejects.toMatchObject(unavailable)
    // The box creates the folder of each key once. After a lost reply, it looks for its nodes with a few requests for
    // all keys.
    expect((await packets(server)) - before).toBeLessThan(2 * keys.length)
    expect(await locks(box)).toEqual([])
    expect(await store.get('key')).toBeUndefined()
    await store.put('key', 'short')
    await box.mutex('key').run(() => undefined)
  })
})
