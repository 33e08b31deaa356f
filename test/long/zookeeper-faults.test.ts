import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { ConnectionLossError, SessionExpiredError, UnreachableError, ZooKeeper } from 'signalbox-zookeeper'
import { queued, soFar } from '../../packages/conformance/src/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import {
  LinkedEnsemble,
  startLaggingEnsemble,
  startZooKeeperEnsemble,
} from '../support/servers/zookeeper-ensemble.js'

// These tests run one after another, because each one affects the server.
describe('the client, when something happens to its server', () => {
  let server: ZooKeeperServer
  let places = 0

  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server.kill())

  /** Returns a client, and the path of its own node. */
  async function client(sessionTimeout: number): Promise<[ZooKeeper, string]> {
    const zk = await ZooKeeper.connect(server.address, { sessionTimeout })
    const path = `/place-${++places}`
    await zk.create(path)
    return [zk, path]
  }

  test('300 creates in flight at a kill: each is known or indeterminate, and looking settles those', async () => {
    let lost = 0
    for (let round = 0; round < 10; round++) {
      const [zk, path] = await client(30_000)
      await using open = zk
      const names = Array.from({ length: 300 }, (_, index) => `${path}/n${index}-`)
      let answered = 0
      const creating = names.map(async name => {
        const { path } = await open.create(name, '', { sequential: true })
        answered++
        return path
      })
      const settled = Promise.allSettled(creating)
      // Some rounds kill the server before its first answer, others in between answers.
      if (round > 0) await until(() => answered >= round * 10)
      await server.kill()
      await server.start()
      const outcomes = await settled
      const there = (await open.getChildren(path, { linearizable: true })).children
      const made = names.map(name => there.filter(child => `${path}/${child}`.startsWith(name)))
      for (const [index, outcome] of outcomes.entries()) {
        expect(made[index]!.length).toBeLessThanOrEqual(1)
        if (outcome.status === 'fulfilled') expect(`${path}/${made[index]!.join()}`).toBe(outcome.value)
        else {
          lost++
          expect(outcome.reason).toBeInstanceOf(ConnectionLossError)
        }
      }
      const again = names.filter((_, index) => made[index]!.length === 0)
      await Promise.all(again.map(name => open.create(name, '', { sequential: true })))
      expect((await open.getChildren(path)).children).toHaveLength(300)
    }
    expect(lost).toBeGreaterThan(0)
  })

  test('a server that is frozen for less than the session loses nothing', async () => {
    const [zk, path] = await client(30_000)
    await using open = zk
    await open.create(`${path}/mine`, '', { ephemeral: true })
    const session = open.sessionId
    server.pause()
    const reading = open.getData(path)
    expect(await soFar(reading)).toBe('pending')
    server.resume()
    await reading
    expect(open.sessionId).toBe(session)
    expect(await open.exists(`${path}/mine`)).toBeDefined()
  })

  test('while a server is frozen for longer, the session ends in time', async () => {
    const [zk, path] = await client(2000)
    await zk.create(`${path}/mine`, '', { ephemeral: true })
    server.pause()
    const end = performance.now() + zk.certainFor
    await expect(zk.setData(path, 'new')).rejects.toThrow(ConnectionLossError)
    await until(() => zk.state === 'expired')
    expect(performance.now()).toBeGreaterThanOrEqual(end)
    await expect(zk.getData(path)).rejects.toThrow(SessionExpiredError)
    server.resume()
    await using other = await ZooKeeper.connect(server.address)
    await until(async () => (await other.exists(`${path}/mine`)) === undefined)
  })

  test('a watch whose callback throws delays no other watch', async () => {
    const [zk, path] = await client(30_000)
    await using open = zk
    const others = process.listeners('uncaughtException')
    const thrown: unknown[] = []
    process.removeAllListeners('uncaughtException').on('uncaughtException', error => thrown.push(error))
    try {
      const told: string[] = []
      const failing = new Error('of the callback')
      const watch = (): void => {
        throw failing
      }
      await open.getData(path, { watch })
      await open.getData(path, { watch: ({ type }) => void told.push(type) })
      await open.setData(path, 'new')
      expect(told).toEqual(['changed'])
      expect((await open.getData(path)).data.toString()).toBe('new')
      await until(() => thrown.length > 0)
      expect(thrown).toEqual([failing])
    } finally {
      process.removeAllListeners('uncaughtException')
      for (const listener of others) process.on('uncaughtException', listener)
    }
  })

  test('replies of more than a megabyte arrive', async () => {
    const [zk, path] = await client(30_000)
    await using open = zk
    const names = Array.from({ length: 6000 }, (_, index) => `${'x'.repeat(200)}${index}`)
    await Promise.all(names.map(name => open.create(`${path}/${name}`)))
    const { children } = await open.getChildren(path)
    expect(children.sort()).toEqual(names.sort())
  })

  test('after its data was wiped, no client goes on with an unknown session', async () => {
    const [zk, path] = await client(4000)
    let ended: unknown
    await zk.onChange(path, event => {
      if (event.type === 'ended') ended = event.cause
    })
    await server.kill()
    server.wipe()
    await server.start()
    const writing = zk.setData(path, 'new')
    await expect(writing).rejects.toMatchObject({ name: expect.stringMatching(/Expired|NotSent/) as unknown })
    await until(() => zk.state === 'expired')
    expect(ended).toBeInstanceOf(SessionExpiredError)
    await using fresh = await ZooKeeper.connect(server.address)
    expect(await fresh.exists(path)).toBeUndefined()
  })
})

test('a client without a free connection gets an error in time, and the others go on', async () => {
  await using server = await startZooKeeper({ config: ['maxClientCnxns=2'] })
  await using first = await ZooKeeper.connect(server.address)
  const second = await ZooKeeper.connect(server.address)
  const refused = ZooKeeper.connect(server.address, { timeout: 1000 })
  await expect(refused).rejects.toThrow(UnreachableError)
  // The server may close the connection before the client has sent anything.
  await expect(refused).rejects.toThrow(/closed the connection|ECONNRESET|EPIPE/)
  await first.create('/a')
  const waiting = ZooKeeper.connect(server.address, { timeout: '30s' })
  await second.close()
  await using third = await waiting
  expect(await third.exists('/a')).toBeDefined()
})

test('a client that moves to a server that is behind never reads older than it has read and written', async () => {
  await using ensemble = await startLaggingEnsemble()
  const { leader, follower, link } = ensemble
  await using way = await Proxy.start(leader.port)
  await using mover = await ZooKeeper.connect(`127.0.0.1:${way.port}`, { sessionTimeout: '30s' })
  await mover.create('/value', 'old')
  await mover.sync()
  await using stale = await ZooKeeper.connect(follower.address)
  await stale.sync()
  link.replies = 'hold'
  await mover.setData('/value', 'new')
  expect((await stale.getData('/value')).data.toString()).toBe('old')
  way.target = follower.port
  way.cut()
  const reading = mover.getData('/value')
  await new Promise(resolve => setTimeout(resolve, 1000))
  expect(await soFar(reading)).toBe('pending')
  link.replies = 'pass'
  expect((await reading).data.toString()).toBe('new')
})

test('when the leader is killed work goes on within 2 s', async () => {
  await using ensemble = await startZooKeeperEnsemble()
  await using box = await open(`zookeeper://${ensemble.address}/place?sessionTimeout=20s`)
  const pauses: number[] = []
  for (let round = 0; round < 3; round++) {
    await box.mutex('key').run(() => undefined)
    const leader = await ensemble.leader()
    const killedAt = performance.now()
    await leader.kill()
    await box.mutex('key').run(() => undefined)
    pauses.push(performance.now() - killedAt)
    await leader.start()
  }
  // The median counts, because an election takes a random time and the machine may have other work.
  expect(pauses.sort((a, b) => a - b)[1]).toBeLessThan(2000)
})

test('a server that is frozen for two thirds of the session is left, and used again within it', async () => {
  await using server = await startZooKeeper()
  await using zk = await ZooKeeper.connect(server.address, { sessionTimeout: '9s' })
  await zk.create('/mine', '', { ephemeral: true })
  const session = zk.sessionId
  const states: string[] = []
  zk.onState(state => states.push(state))
  await zk.sync()
  server.pause()
  await until(() => states.length > 0)
  server.resume()
  await until(() => zk.state === 'connected')
  expect(states).toEqual(['suspended', 'connected'])
  expect(zk.sessionId).toBe(session)
  expect((await zk.exists('/mine'))?.ephemeralOwner).toBe(session)
})

test('a holder fails over to another server and keeps its lock', async () => {
  await using ensemble = await LinkedEnsemble.start()
  const { leader, follower, other } = await ensemble.roles()
  await using near = await Proxy.start(follower.port)
  await using far = await Proxy.start(other.port)
  far.target = undefined
  const hosts = [near, far].map(({ port }) => `127.0.0.1:${port}`).join(',')
  await using box = await open(`zookeeper://${hosts}/place?sessionTimeout=12s`)
  await using rival = await open(`zookeeper://${other.address}/place?sessionTimeout=12s`)
  const grant = await box.mutex('key').acquire({ lease: '1h' })
  const waiting = rival.mutex('key').acquire({ lease: '1h' })
  await queued(rival, 'key', 1)
  far.target = other.port
  ensemble.link(follower, leader).requests = 'hold'
  // Longer than the time after which the leader ends a silent session.
  await new Promise(resolve => setTimeout(resolve, 16_000))
  grant.assertHeld()
  expect(await soFar(waiting)).toBe('pending')
  await grant.release()
  await (await waiting).release()
})
