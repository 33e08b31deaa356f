import { afterAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { diagnose } from '../../src/index.js'
import { LostError, UnavailableError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { WATCH_READ_INTERVAL } from '../../src/engine/wait-times.js'
import { digestId, ensureNode, NoNodeError, PERMISSIONS, ZooKeeper, type Acl } from 'signalbox-zookeeper'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { block, locks, pause, queued, timed } from '../../packages/conformance/src/time.js'

let places = 0

const server = await startZooKeeper()

afterAll(() => server.kill())

const nextPlace = (): string => `/place-${++places}`

function box(place: string, port = server.port, sessionTimeout = '4s'): Promise<Box> {
  return open(`zookeeper://127.0.0.1:${port}${place}?sessionTimeout=${sessionTimeout}`)
}

/** Returns all nodes below a path. The server may delete empty containers in the meantime. */
async function tree(zk: ZooKeeper, path: string): Promise<string[]> {
  const { children } = await zk.getChildren(path).catch((error: unknown) => {
    if (error instanceof NoNodeError) return { children: [] }
    throw error
  })
  const below = await Promise.all(children.map(child => tree(zk, `${path}/${child}`)))
  return [...children.map(child => `${path}/${child}`), ...below.flat()]
}

describe.concurrent('the ZooKeeper engine', () => {
  test('requests that were lost with the connection keep their order, also before those that come later', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using holder = await box(place)
    await using one = await box(place, proxy.port)
    const held = await holder.mutex('key').acquire()
    const served: number[] = []
    const asked: Promise<void>[] = []
    const ask = (): void => {
      const name = asked.length
      asked.push(one.mutex('key').run(() => void served.push(name), { ownRequest: true }))
    }
    ask()
    await queued(holder, 'key', 1)
    proxy.requests = 'lose'
    ask()
    ask()
    await pause(20)
    proxy.requests = 'pass'
    proxy.cut()
    for (let turn = 0; turn < 30; turn++) {
      await pause(2)
      ask()
    }
    await queued(holder, 'key', asked.length)
    await held.release()
    await Promise.all(asked)
    expect(served).toEqual([...asked.keys()])
  })

  test('the requests of one tick use one transaction, and each settles by itself', async () => {
    const place = nextPlace()
    await using one = await box(place)
    await using zk = await ZooKeeper.connect(server.address)
    const lock = (...keys: string[]) => one.mutex(...keys).acquire()
    // Creates parents that the server does not delete.
    for (const key of ['a', 'b', 'c', 'd', 'e']) await zk.create(`${place}/locks/${key}`)
    const [a, b, c, d] = await Promise.all([lock('a'), lock('b'), lock('c'), lock('d', 'e')])
    expect(new Set([a, b, c, d].map(({ token }) => token)).size).toBe(1)

    const [node] = (await tree(zk, `${place}/locks/a`)).filter(path => path.includes('_c_'))
    await zk.delete(node!)
    // The server rejects the whole transaction, because a node and a parent are missing.
    const settled = await Promise.allSettled([
      a.release(),
      b.release(),
      c.release(),
      d.release(),
      lock('new'),
    ])
    expect(settled.map(({ status }) => status)).toEqual(['rejected', ...Array<string>(4).fill('fulfilled')])
    expect((settled[0] as PromiseRejectedResult).reason).toBeInstanceOf(LostError)

    // Requests for the same key can't share its number.
    const [first, second] = [lock('a', 'b'), lock('a', 'c')]
    await (await first).release()
    expect((await second).token).toBeGreaterThan((await first).token)
  })

  test('if the reply to one tick is lost, each request finds its own outcome', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await box(place, proxy.port)
    await using other = await box(place)
    const lock = (...keys: string[]) => one.mutex(...keys).acquire()
    for (const key of ['a', 'b', 'c', 'd']) await one.mutex(key).run(() => undefined)
    for (const isCarriedOut of [true, false]) {
      const [a, b] = await Promise.all([lock('a'), lock('b')])
      proxy[isCarriedOut ? 'replies' : 'requests'] = 'lose'
      const lost = Promise.all([a.release(), lock('c'), lock('a', 'd'), b.release()])
      await until(() => (isCarriedOut ? proxy.withheldReplies : proxy.withheldRequests) > 0)
      proxy.replies = proxy.requests = 'pass'
      proxy.cut()
      const [, c, ad] = await lost
      c.assertHeld()
      ad.assertHeld()
      const reports = await locks(other)
      expect(reports.map(({ key, holders, waiters }) => [key, holders.length, waiters.length])).toEqual([
        ['a', 1, 0],
        ['c', 1, 0],
        ['d', 1, 0],
      ])
      await Promise.all([c.release(), ad.release()])
      expect(await locks(other)).toEqual([])
    }
  })

  test('a commit whose reply was lost is found by its stamp', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await box(place, proxy.port)
    await using other = await box(place)
    const store = one.store('s')
    await store.put('k', 0)
    proxy.replies = 'lose'
    const put = store.put('k', 1)
    await until(() => proxy.withheldReplies > 0)
    proxy.replies = 'pass'
    proxy.cut()
    expect(await other.store('s').get('k')).toEqual({ value: 1, version: await put })
    await store.transaction(['k'], async transaction => {
      transaction.put('k', 2)
      proxy.replies = 'lose'
      void until(() => proxy.withheldReplies > 0).then(() => {
        proxy.replies = 'pass'
        proxy.cut()
      })
    })
    expect((await other.store('s').get('k'))!.value).toBe(2)
    expect(await locks(other)).toEqual([])
  })

  for (const way of ['on its way', 'not sent', 'carried out'])
    test(`a request that is ${way} when the session ends is sent in the next one`, async () => {
      const place = nextPlace()
      await using proxy = await Proxy.start(server.port)
      await using one = await box(place, proxy.port, '3s')
      await using other = await box(place)
      const version = await other.store('s').put('k', 'before')
      const held = await one.mutex('held').acquire({ lease: '1h' })
      await using zk = await ZooKeeper.connect(server.address)
      // Creates parents that the server does not delete. If a parent were missing, the first attempt would not be
      // applied.
      for (const key of ['key', 'more', 'other']) await zk.create(`${place}/locks/${key}`)

      proxy.target = undefined
      if (way === 'not sent') proxy.cut()
      else proxy[way === 'on its way' ? 'requests' : 'replies'] = 'hold'
      const asked = [one.mutex('key').acquire(), one.mutex('key', 'more').acquire()]
      const tried = one.mutex('other').tryAcquire()
      // The client gives up the read after the session timeout, when the next session may not have begun yet.
      const read = one
        .store('s')
        .get('k')
        .catch((error: unknown) => {
          expect(error).toBeInstanceOf(UnavailableError)
          return one.store('s').get('k')
        })
      if (way === 'carried out') await until(async () => (await locks(other, 'other')).length === 1)
      await until(async () => (await locks(other, 'held')).length === 0)
      expect(held.signal.aborted).toBe(true)
      proxy.requests = proxy.replies = 'pass'
      proxy.target = server.port

      expect(await read).toEqual({ value: 'before', version })
      for (const one of asked) {
        const grant = await one
        grant.assertHeld()
        await grant.release()
      }
      // Applied requests block further attempts for as long as the server keeps the old session.
      await (await tried)?.release()
      await until(async () => (await locks(other)).length === 0)
      expect((await tree(zk, place)).filter(path => path.includes('_c_'))).toEqual([])
    })

  test('a watcher sees changes between two sessions', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await box(place, proxy.port, '1s')
    await using other = await box(place)
    const held = await one.mutex('held').acquire({ lease: '1h' })
    const changes = one.store('s').watch('key')
    expect((await changes.next()).value).toBeUndefined()
    const change = changes.next()
    proxy.target = undefined
    proxy.cut()
    await until(() => held.signal.aborted)
    const version = await other.store('s').put('key', 'changed')
    proxy.target = server.port
    expect(await timed(() => change)).toBeLessThan(WATCH_READ_INTERVAL / 2)
    expect((await change).value).toEqual({ value: 'changed', version })
    await changes.return()
  })

  test('a commit that was not sent when the session ended is reported as lost', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await box(place, proxy.port, '4s')
    await using other = await box(place)
    await other.store('s').put('key', 'before')
    let isCut = false
    const writing = one.store('s').transaction(['key'], async transaction => {
      transaction.put('key', 'late')
      proxy.target = undefined
      proxy.cut()
      // In this time, the client detects the cut, and starts to queue requests.
      await pause(100)
      isCut = true
    })
    const refused = expect(writing).rejects.toBeInstanceOf(LostError)
    await until(() => isCut)
    // The lock becomes free when the servers end the session.
    await other.mutex('s/key').run(() => undefined)
    proxy.target = server.port
    await refused
    expect((await other.store('s').get('key'))!.value).toBe('before')
    await one.store('s').put('key', 'after')
  })

  test('the error for a request that is too large names its keys', async () => {
    const place = nextPlace()
    await using one = await box(place)
    const large = 'x'.repeat(1_048_576)
    await expect(one.store('s').put('large', large)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      key: 's/large',
    })
    const writing = one.store('s').transaction(['a', 'b'], transaction => transaction.put('b', large))
    await expect(writing).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', key: 's/b, s/a' })
    const keys = Array.from({ length: 5000 }, (_, index) => `invoice:${String(index).padStart(6, '0')}`)
    for (const verb of ['acquire', 'tryAcquire'] as const)
      await expect(one.mutex(...keys)[verb]()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        key: keys.join(', '),
      })
    expect(await locks(one)).toEqual([])
    await one.mutex('a').run(() => undefined)
  })

  test('a parent that the server has deleted is created again, and tokens increase', async () => {
    const place = nextPlace()
    await using one = await box(place)
    await using zk = await ZooKeeper.connect(server.address)
    const tokens: bigint[] = []
    for (let round = 0; round < 2; round++) {
      await one.mutex('a', 'b').run(grant => void tokens.push(grant.token))
      await until(async () => (await zk.getChildren(`${place}/locks`)).children.length === 0)
    }
    expect(tokens[1]).toBeGreaterThan(tokens[0]!)
  })

  test('nodes of another layout count in a queue by their names, and are ignored among values', async () => {
    const place = nextPlace()
    await using one = await box(place)
    await using zk = await ZooKeeper.connect(server.address)
    await one.mutex('key').run(() => undefined)
    await zk.create(`${place}/store/s%2Fkey`, 'none of ours')
    const name = `${place}/locks/key/_c_5a2cbd1a-6bb8-4a3c-9a0c-5f0f2f3a8a11-lock-`
    const { path } = await zk.create(name, 'none of ours', { ephemeral: true, sequential: true })
    expect(await one.mutex('key').tryAcquire()).toBeUndefined()
    for (const ask of [() => one.store('s').get('key'), () => one.store('s').put('key', 1)])
      await expect(ask()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect((await zk.getData(`${place}/store/s%2Fkey`)).data.toString()).toBe('none of ours')
    const waiting = one.mutex('key').acquire()
    await zk.delete(path)
    await (await waiting).release()
  })

  test('a request with hundreds of keys can be found and revoked by any of them', async () => {
    const place = nextPlace()
    await using one = await box(place)
    await using other = await box(place)
    const keys = Array.from({ length: 300 }, (_, index) => `invoice:${String(index).padStart(6, '0')}`)
    const last = keys.at(-1)!
    const held = await one.mutex(...keys).acquire()
    const waiting = other.mutex('invoice:apart', last).acquire()
    await queued(one, last, 1)
    const [report] = await locks(other, last)
    expect(report!.holders.map(({ token }) => token)).toEqual([held.token])
    expect(report!.waiters).toHaveLength(1)
    // The waiter is first in that queue, but not in all its queues.
    const [apart] = await locks(other, 'invoice:apart')
    expect([apart!.holders.length, apart!.waiters.length]).toEqual([0, 1])
    expect(await other.forceRelease(last, held.token)).toBe(true)
    await until(() => held.signal.aborted)
    await (await waiting).release()
    expect(await locks(other)).toEqual([])
  })

  test('a client that is not the creator has no access to private places', async () => {
    const place = nextPlace()
    const url = (login: string): string => `zookeeper://${login}127.0.0.1:${server.port}${place}`
    await using one = await open(`${url('ann:secret@')}?acl=creator`)
    await using zk = await ZooKeeper.connect(server.address)
    await zk.authenticate('digest', 'ann:secret')
    await one.mutex('key').run(async () => {
      await one.store('s').put('key', 1)
      const made = await tree(zk, place)
      expect(made.filter(path => path.includes('_c_'))).toHaveLength(1)
      for (const path of made) {
        const answer = await zk.getAcl(path).catch((error: unknown) => {
          // The server may delete empty containers in the meantime.
          if (!(error instanceof NoNodeError)) throw error
        })
        const own = [{ permissions: PERMISSIONS.all, scheme: 'digest', id: digestId('ann', 'secret') }]
        if (answer || path.includes('_c_')) expect(answer?.acl, path).toEqual(own)
      }
    })
    await expect(open(url('bob:other@'))).rejects.toThrow(/ACL/)
    await expect(open(url(''))).rejects.toThrow(/ACL/)
  })

  test.each(['', '/locks', '/store', '/sessions'])(
    'the node %j that others may change is refused and reported, unless the ACL of the URL permits it',
    async node => {
      const place = nextPlace()
      const url = (acl: string): string =>
        `zookeeper://ann:secret@127.0.0.1:${server.port}${place}?acl=${acl}`
      await using zk = await ZooKeeper.connect(server.address)
      await zk.authenticate('digest', 'ann:secret')
      await (await open(url('creator'))).close()
      const own = { permissions: PERMISSIONS.all, scheme: 'digest', id: digestId('ann', 'secret') }
      const bob = { permissions: PERMISSIONS.delete, scheme: 'digest', id: digestId('bob', 'other') }
      const anyone = { permissions: PERMISSIONS.create | PERMISSIONS.read, scheme: 'world', id: 'anyone' }
      for (const [entry, name] of [
        [bob, 'digest:bob'],
        [anyone, 'world:anyone'],
      ] as const) {
        await zk.setAcl(place + node, [own, entry])
        const reason = `${name} may change the node ${place}${node}`
        await expect(open(url('creator'))).rejects.toMatchObject({
          code: 'UNAVAILABLE',
          message: expect.stringContaining(reason) as string,
        })
        expect((await diagnose(url('creator'))).findings).toContainEqual(
          expect.objectContaining({ id: 'untrusted-node', how: expect.stringContaining(reason) as string }),
        )
      }
      await zk.setAcl(place + node, [own, { ...anyone, permissions: PERMISSIONS.read }])
      await (await open(url('creator'))).close()
      await zk.setAcl(place + node, [{ ...own, permissions: PERMISSIONS.all - PERMISSIONS.admin }, bob])
      const list = `auth::cdrwa,digest:${encodeURIComponent(bob.id)}:d`
      await (await open(url(list))).close()
      expect((await diagnose(url(list))).findings.map(({ id }) => id)).not.toContain('untrusted-node')
      await (await open(url('open'))).close()
    },
  )

  test('a node whose ACL the box may not read is refused and reported with what to do', async () => {
    const url = (place: string, acl: string): string =>
      `zookeeper://ann:secret@127.0.0.1:${server.port}${place}?acl=${acl}`
    await using zk = await ZooKeeper.connect(server.address)
    await zk.authenticate('digest', 'root:secret')
    const [root, ann] = [digestId('root', 'secret'), digestId('ann', 'secret')]
    const acl = (permissions: number): Acl[] => [
      { permissions: PERMISSIONS.all, scheme: 'digest', id: root },
      { permissions, scheme: 'digest', id: ann },
    ]
    for (const permissions of [PERMISSIONS.create, PERMISSIONS.create | PERMISSIONS.write]) {
      const place = nextPlace()
      await ensureNode(zk, place, { acl: acl(permissions) })
      const reason = `this client may not read the ACL of the node ${place}`
      await expect(open(url(place, 'creator'))).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        message: expect.stringMatching(`${reason}.*Give this client the permission r`) as string,
      })
      expect((await diagnose(url(place, 'creator'))).findings).toContainEqual(
        expect.objectContaining({ id: 'untrusted-node', how: expect.stringContaining(reason) as string }),
      )
    }
    const place = nextPlace()
    const list = `auth::cdrwa,digest:${encodeURIComponent(root)}:cdrwa`
    await ensureNode(zk, place, { acl: acl(PERMISSIONS.create | PERMISSIONS.read) })
    await (await open(url(place, list))).close()
  })

  test('permissions of one client in several entries of an ACL are added up, and its own are permitted', async () => {
    const place = nextPlace()
    const url = `zookeeper://ann:secret@127.0.0.1:${server.port}${place}?acl=`
    await using zk = await ZooKeeper.connect(server.address)
    await zk.authenticate('digest', 'ann:secret')
    await zk.authenticate('digest', 'bob:other')
    const [ann, bob] = [digestId('ann', 'secret'), digestId('bob', 'other')]
    await ensureNode(zk, place, {
      acl: [
        { permissions: PERMISSIONS.all, scheme: 'digest', id: ann },
        { permissions: PERMISSIONS.all - PERMISSIONS.admin, scheme: 'digest', id: bob },
      ],
    })
    const of = (permissions: string): string => `digest:${encodeURIComponent(bob)}:${permissions}`
    await (await open(`${url}auth::cdrwa,${of('cd')},${of('rw')}`)).close()
    await (await open(`${url}${of('cd')},${of('rw')}`)).close()
    await expect(open(`${url}auth::cdrwa,${of('c')},${of('rw')}`)).rejects.toThrow('digest:bob may change')
  })
})

// Not concurrent, because it stops this process.
test('a waiter keeps its place although its process was frozen for longer than signs of life last', async () => {
  const place = nextPlace()
  await using zk = await ZooKeeper.connect(server.address)
  await using one = await box(place, server.port, '10s')
  await using other = await box(place, server.port, '10s')
  const held = await one.mutex('key').acquire()
  const waiting = other.mutex('key').acquire({ lease: '2s' })
  await queued(one, 'key', 1)
  const nodes = () => tree(zk, `${place}/locks/key`)
  const before = await nodes()
  block(2500)
  await pause(200)
  expect(await nodes()).toEqual(before)
  await held.release()
  await (await waiting).release()
})
