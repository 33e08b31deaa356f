import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import {
  BadVersionError,
  ClosedError,
  ConnectionLossError,
  CREATOR_ACL,
  digestId,
  InvalidArgumentError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotSentError,
  oneEvent,
  PERMISSIONS,
  UnreachableError,
  ZooKeeper,
  type ConnectOptions,
  type WatchEvent,
} from 'signalbox-zookeeper'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { runProgram } from '../support/run-program.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

let places = 0

const server = await startZooKeeper()

afterAll(() => server.kill())

/** Returns the time until which a session certainly lasts, as a time of `performance.now()`. */
function certainUntil(zk: ZooKeeper): number {
  return performance.now() + zk.certainFor
}

/** Connects a client below a new node. */
async function client(options: ConnectOptions = {}, address = server.address): Promise<ZooKeeper> {
  const place = `/place-${++places}`
  await using root = await ZooKeeper.connect(server.address)
  await root.create(place)
  return await ZooKeeper.connect(address + place, options)
}

describe.concurrent('the ZooKeeper client', () => {
  test('creates, reads, writes and deletes nodes', async () => {
    await using zk = await client()
    const { path, stat } = await zk.create('/a', 'first')
    expect(path).toBe('/a')
    expect(stat).toMatchObject({ version: 0, dataLength: 5, ephemeralOwner: 0n })
    expect(typeof stat.czxid).toBe('bigint')
    expect((await zk.getData('/a')).data.toString()).toBe('first')
    const changed = await zk.setData('/a', 'second', 0)
    expect(changed.version).toBe(1)
    expect(changed.mzxid).toBeGreaterThan(stat.czxid)
    expect(await zk.exists('/a')).toEqual(changed)
    expect(await zk.exists('/b')).toBeUndefined()
    await zk.create('/a/child')
    expect((await zk.getChildren('/a')).children).toEqual(['child'])
    await zk.delete('/a/child')
    await zk.delete('/a', 1)
    expect(await zk.exists('/a')).toBeUndefined()
    expect(zk.zxid).toBeGreaterThan(changed.mzxid)
  })

  test('creates every kind of node', async () => {
    await using zk = await client()
    const ephemeral = await zk.create('/e', '', { ephemeral: true })
    expect(ephemeral.stat.ephemeralOwner).toBe(zk.sessionId)
    expect((await zk.create('/s-', '', { sequential: true })).path).toBe('/s-0000000001')
    expect((await zk.create('/es-', '', { ephemeral: true, sequential: true })).path).toBe('/es-0000000002')
    await zk.create('/ttl', '', { ttl: 100 })
    await zk.create('/container', '', { container: true })
    await zk.create('/container/child')
    expect((await zk.getEphemerals()).sort()).toEqual(['/e', '/es-0000000002'])
    await zk.delete('/container/child')
    await until(async () => !(await zk.exists('/container')) && !(await zk.exists('/ttl')))
    for (const options of [{ container: true, ephemeral: true }, { ephemeral: true, ttl: 5 }, { ttl: 0 }])
      await expect(zk.create('/x', '', options)).rejects.toThrow(InvalidArgumentError)
  })

  test('each refusal has its own error class', async () => {
    await using zk = await client()
    await zk.create('/a', '', { ephemeral: true })
    await zk.create('/b')
    await zk.create('/b/c')
    await expect(zk.create('/a')).rejects.toThrow(NodeExistsError)
    await expect(zk.create('/x/y')).rejects.toThrow(NoNodeError)
    await expect(zk.create('/a/b')).rejects.toThrow(NoChildrenForEphemeralsError)
    await expect(zk.delete('/b')).rejects.toThrow(NotEmptyError)
    await expect(zk.setData('/b', '', 7)).rejects.toThrow(BadVersionError)
    await expect(zk.getData('/x')).rejects.toMatchObject({
      code: 'NO_NODE',
      operation: 'getData',
      path: '/x',
    })
    for (const path of ['a', '', '/a/', '//', '/a/../b', '/\ud83d\ude82', '/\0', 7])
      await expect(zk.exists(path as string)).rejects.toThrow(InvalidArgumentError)
  })

  test('ACLs keep other clients out, and authentication admits them, after a reconnect, too', async () => {
    const auth = [{ scheme: 'digest', data: 'ann:secret' }]
    await using proxy = await Proxy.start(server.port)
    const connecting = client({ auth }, `127.0.0.1:${proxy.port}`)
    const place = places
    await using zk = await connecting
    await zk.create('/a', 'mine', { acl: CREATOR_ACL })
    const { acl } = await zk.getAcl('/a')
    expect(acl).toEqual([{ permissions: 31, scheme: 'digest', id: digestId('ann', 'secret') }])

    const path = `/place-${place}/a`
    await using other = await ZooKeeper.connect(server.address)
    await expect(other.getData(path)).rejects.toThrow(NoAuthError)
    await expect(other.setData(path, '')).rejects.toThrow(NoAuthError)
    await other.authenticate('digest', 'bob:secret')
    await expect(other.getData(path)).rejects.toThrow(NoAuthError)
    await other.authenticate('digest', 'ann:secret')
    expect((await other.getData(path)).data.toString()).toBe('mine')

    const states: string[] = []
    zk.onState(state => states.push(state))
    proxy.cut()
    await until(() => states.includes('connected'))
    expect((await zk.getData('/a')).data.toString()).toBe('mine')
    await zk.setAcl('/a', [{ permissions: PERMISSIONS.read, scheme: 'world', id: 'anyone' }])
    await expect(zk.setData('/a', '')).rejects.toThrow(NoAuthError)
    await using stranger = await ZooKeeper.connect(server.address)
    expect((await stranger.getData(path)).data.toString()).toBe('mine')
    await expect(stranger.authenticate('nonsense', '')).rejects.toThrow()
    expect(stranger.state).toBe('closed')
  })

  test('a multi is applied as a whole or not at all', async () => {
    await using zk = await client()
    const answers = await zk
      .transaction()
      .create('/a', 'A')
      .create('/s-', '', { sequential: true })
      .setData('/a', 'B')
      .check('/a', 1)
      .commit()
    expect(answers.map(answer => answer && ('path' in answer ? answer.path : answer.version))).toEqual([
      '/a',
      '/s-0000000001',
      1,
      undefined,
    ])
    const refused = await zk.transaction().setData('/a', 'C').check('/a', 1).delete('/x').outcome()
    expect(refused).toMatchObject({ done: false, index: 1, error: { code: 'BAD_VERSION', path: '/a' } })
    expect((await zk.getData('/a')).data.toString()).toBe('B')
    await expect(zk.transaction().delete('/a').create('/x/y').commit()).rejects.toThrow(NoNodeError)
    expect(await zk.exists('/a')).toBeDefined()
    expect(await zk.transaction().commit()).toEqual([])
  })

  test('a watch reports one change, a persistent one all changes', async () => {
    await using zk = await client()
    const events: string[] = []
    const watch = ({ type, path }: WatchEvent): void => void events.push(`${type} ${path}`)
    await zk.exists('/a', { watch })
    const recursive = await zk.watch('/', { recursive: true })
    const persistent = await zk.watch('/a')
    const once = oneEvent()
    await zk.getChildren('/', { watch: once.listener })
    await zk.create('/a')
    await zk.setData('/a', '1')
    await zk.getData('/a', { watch })
    await zk.setData('/a', '2')
    await zk.setData('/a', '3')
    await zk.create('/a/b')
    expect(events).toEqual(['created /a', 'changed /a'])
    expect(await once.event).toEqual({ type: 'children', path: '/' })
    const take = async (stream: AsyncIterator<WatchEvent>, count: number): Promise<string[]> => {
      const all: string[] = []
      for (let index = 0; index < count; index++) {
        const { type, path } = (await stream.next()).value as WatchEvent
        all.push(`${type} ${path}`)
      }
      return all
    }
    const changes = ['created /a', 'changed /a', 'changed /a', 'changed /a']
    expect(await take(recursive, 5)).toEqual([...changes, 'created /a/b'])
    expect(await take(persistent, 5)).toEqual([...changes, 'children /a'])
    const next = persistent.next()
    await persistent.return()
    expect((await next).done).toBe(true)
    await recursive.return()
    await until(() => zk.watched === 0)
  })

  test('operations after close are not sent, and those before it are completed', async () => {
    await using other = await ZooKeeper.connect(server.address)
    await other.create('/closing')
    const zk = await ZooKeeper.connect(`${server.address}/closing`)
    const creating = zk.create('/before')
    const closing = [zk.close(), zk.close()]
    const late = [zk.create('/after'), zk.exists('/before')].map(each =>
      expect(each).rejects.toThrow(ClosedError),
    )
    await Promise.all([...late, ...closing])
    await creating
    expect(zk.state).toBe('closed')
    expect((await other.getChildren('/closing')).children).toEqual(['before'])
  })

  test('a listener that starts while another one stops gets all changes', async () => {
    await using zk = await client()
    const stop = await zk.onChange('/a', () => undefined)
    const types: string[] = []
    const listening = zk.onChange('/a', ({ type }) => void types.push(type))
    stop()
    await listening
    await zk.create('/a')
    await until(() => types.length > 0)
    expect(types).toEqual(['created'])
  })

  test('payloads from 0 bytes to the limit arrive complete, and larger ones are not sent', async () => {
    const connecting = client()
    const place = places
    await using zk = await connecting
    const bytes = Buffer.alloc(1_048_575, 0).map((_, index) => index % 251)
    for (const size of [0, 1, 511, 512, 513, 65_536, 131_072, 131_073, 1_048_450]) {
      const path = `/${size}`
      const data = bytes.subarray(0, size)
      await zk.create(path, data)
      const read = await zk.getData(path)
      expect(read.data.equals(data)).toBe(true)
    }
    // The numbers and lengths in a create request, and the ACL for world and anyone.
    const overhead = 8 + 4 + 4 + 4 + 4 + 4 + 5 + 4 + 6 + 4
    const chroot = Buffer.byteLength(`/place-${place}`)
    const most = 1_048_575 - overhead - chroot - Buffer.byteLength('/most')
    await zk.create('/most', bytes.subarray(0, most))
    expect((await zk.getData('/most')).data.equals(bytes.subarray(0, most))).toBe(true)
    await expect(zk.create('/more', bytes.subarray(0, most + 1))).rejects.toThrow(/has 1048576 bytes/)
    await expect(zk.create('/larger', bytes)).rejects.toThrow(/1048575/)
    expect(zk.state).toBe('connected')
    expect(await zk.exists('/larger')).toBeUndefined()
  })
})

describe.concurrent('connecting', () => {
  test('a wrong port, a wrong address and a server of another kind fail in time with the cause', async () => {
    const silent = createServer()
    const rude = createServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const ports = [await freePort(), await freePort(), await freePort()] as const
    silent.listen(ports[1], '127.0.0.1').unref()
    rude.listen(ports[2], '127.0.0.1').unref()
    for (const [address, cause] of [
      [`127.0.0.1:${ports[0]}`, /ECONNREFUSED/],
      [`127.0.0.1:${ports[1]}`, /timed out waiting/],
      [`127.0.0.1:${ports[2]}`, /not a ZooKeeper server/],
      ['no-such-host.invalid:2181', /no-such-host/],
    ] as const) {
      const started = performance.now()
      const failing = ZooKeeper.connect(address, { timeout: 700 })
      await expect(failing).rejects.toThrow(UnreachableError)
      await expect(failing).rejects.toThrow(cause)
      expect(performance.now() - started).toBeLessThan(5000)
    }
    silent.close()
    rude.close()
  })
})

describe.concurrent('a connection that fails', () => {
  test('the session, its ephemeral nodes and its watches outlive a cut', async () => {
    await using proxy = await Proxy.start(server.port)
    await using zk = await client({ sessionTimeout: '10s' }, `127.0.0.1:${proxy.port}`)
    const id = zk.sessionId
    await zk.create('/e', '', { ephemeral: true })
    await zk.create('/a')
    const events: string[] = []
    await zk.getData('/a', { watch: ({ type }) => void events.push(type) })
    const states: string[] = []
    zk.onState(state => states.push(state))
    proxy.target = undefined
    proxy.cut()
    await until(() => zk.state === 'suspended')
    await expect(zk.exists('/a', { suspended: 'fail' })).rejects.toThrow(NotSentError)
    await expect(zk.exists('/a', { timeout: 50 })).rejects.toThrow(NotSentError)
    await using other = await ZooKeeper.connect(server.address)
    const place = (await other.getChildren('/')).children.map(name => `/${name}/e`)
    const owners = await Promise.all(place.map(path => other.exists(path)))
    const own = place[owners.findIndex(stat => stat?.ephemeralOwner === id)]!
    await other.setData(own.replace(/e$/, 'a'), 'changed')
    const order: string[] = []
    const waiting = [
      zk.create('/later').then(() => order.push('create')),
      zk.setData('/later', '1').then(() => order.push('setData')),
      zk.getData('/later').then(({ data }) => order.push(data.toString())),
    ]
    proxy.target = server.port
    await Promise.all(waiting)
    expect(order).toEqual(['create', 'setData', '1'])
    expect(zk.sessionId).toBe(id)
    expect(await zk.exists('/e')).toBeDefined()
    expect(events).toEqual(['changed'])
    expect(states).toEqual(['suspended', 'connected'])
  })

  test('a change whose reply was lost is indeterminate, and a read is repeated', async () => {
    await using proxy = await Proxy.start(server.port)
    await using zk = await client({}, `127.0.0.1:${proxy.port}`)
    await zk.create('/a', 'data')
    proxy.replies = 'lose'
    const creating = zk.create('/b')
    const reading = zk.getData('/a')
    const outcome = expect(creating).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      operation: 'create',
      path: '/b',
    })
    await until(() => proxy.withheldReplies > 0)
    proxy.replies = 'pass'
    proxy.cut()
    await outcome
    await expect(creating).rejects.toThrow(ConnectionLossError)
    expect((await reading).data.toString()).toBe('data')
    expect(await zk.exists('/b')).toBeDefined()
  })

  test('reads do not make a session certain to live, and pings do if the caller asks for it', async () => {
    await using zk = await client({ sessionTimeout: '4s' })
    const end = certainUntil(zk)
    await until(async () => {
      await zk.exists('/')
      return zk.certainFor <= 0
    })
    expect(certainUntil(zk)).toBeCloseTo(end, -1)
    expect(zk.state).toBe('connected')
    zk.keepCertain(true)
    await zk.certain()
    expect(zk.certainFor).toBeGreaterThan(0)
    const before = certainUntil(zk)
    await until(() => certainUntil(zk) > before + zk.sessionTimeout)
  })

  test('a process stays alive while it waits until its session is certain', async () => {
    const waiting = `
      import { ZooKeeper } from 'signalbox-zookeeper'
      const zk = await ZooKeeper.connect('${server.address}', { sessionTimeout: '1s' })
      while (zk.certainFor > 0) await new Promise(resolve => setTimeout(resolve, 10))
      zk.keepCertain(true)
      void zk.certain().then(() => console.log('certain')).finally(() => zk.close())`
    const argv = ['--input-type=module', '-e', waiting]
    const { stdout } = await runProgram(process.execPath, argv, { cwd: root, timeLimit: 20_000 })
    expect(stdout).toBe('certain\n')
  })

  test('thousands of watches are set again after a lost connection', async () => {
    await using proxy = await Proxy.start(server.port)
    await using zk = await client({}, `127.0.0.1:${proxy.port}`)
    let count = 0
    const long = 'x'.repeat(100)
    const paths = Array.from({ length: 6000 }, (_, index) => `/${long}${index}`)
    await Promise.all(
      paths.map(path =>
        zk.exists(path, {
          watch: () => {
            count++
          },
        }),
      ),
    )
    const states: string[] = []
    zk.onState(state => states.push(state))
    proxy.cut()
    await until(() => states.includes('suspended'))
    await Promise.all([paths[0]!, paths[3000]!, paths[5999]!].map(path => zk.create(path)))
    await until(() => count === 3)
    expect(zk.watched).toBe(5997)
  })
})
