import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { ZooKeeper, type WatchListener } from 'signalbox-zookeeper'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import type { ZooKeeperServer } from '../support/servers/zookeeper.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { queued, soFar } from '../../packages/conformance/src/time.js'

// Run one after the other, because each stops servers.
describe('an ensemble of three', () => {
  let ensemble: ZooKeeperEnsemble

  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  }, 60_000)
  afterAll(() => ensemble.kill())

  test('work continues when the leader is killed, and grants stay held', async () => {
    const url = `zookeeper://${ensemble.address}/place?sessionTimeout=20s`
    await using one = await open(url)
    await using other = await open(url)
    const held = await one.mutex('key').acquire()
    const waiting = other.mutex('key').acquire()
    await queued(one, 'key', 1)
    const leader = await ensemble.leader()
    await leader.kill()
    const working = one.mutex('another').run(() => 'done')
    expect(await working).toBe('done')
    held.assertHeld()
    expect(await soFar(waiting)).toBe('pending')
    await held.release()
    const next = await waiting
    expect(next.token).toBeGreaterThan(held.token)
    await next.release()
    await leader.start()
  })

  test('an ensemble that restarts within the session loses nothing', async () => {
    const url = `zookeeper://${ensemble.address}/place?sessionTimeout=30s`
    await using one = await open(url)
    await using other = await open(url)
    const held = await one.mutex('key').acquire()
    const waiting = other.mutex('key').acquire()
    await queued(one, 'key', 1)
    await one.store('s').put('key', 'kept')
    await ensemble.stop()
    held.assertHeld()
    await ensemble.start()
    expect((await one.store('s').get('key'))!.value).toBe('kept')
    held.assertHeld()
    expect(await soFar(waiting)).toBe('pending')
    await held.release()
    await (await waiting).release()
  })

  test('watches and ephemeral nodes move to another server with their session', async () => {
    const [first, second] = ensemble.servers as [ZooKeeperServer, ZooKeeperServer, ZooKeeperServer]
    await using proxy = await Proxy.start(first.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sessionTimeout: '30s' })
    await using other = await ZooKeeper.connect(second.address)
    for (const path of ['/once', '/missed', '/always']) await zk.create(path)
    await zk.create('/mine', '', { ephemeral: true })
    const { sessionId } = zk
    const events: string[] = []
    const watch: WatchListener = ({ type, path }) => void events.push(`${type} ${path}`)
    await zk.getData('/once', { watch })
    await zk.getData('/missed', { watch })
    await zk.onChange('/always', watch)

    proxy.target = undefined
    proxy.cut()
    await until(() => zk.state === 'suspended')
    await other.sync()
    await other.setData('/missed', 'while no client was connected')
    proxy.target = second.port
    await until(() => events.includes('changed /missed'))
    expect(zk.sessionId).toBe(sessionId)
    events.length = 0
    await other.setData('/once', 'new')
    await other.setData('/always', 'new')
    await until(() => events.length === 2)
    expect(events.sort()).toEqual(['changed /always', 'changed /once'])
    expect((await other.exists('/mine'))!.ephemeralOwner).toBe(sessionId)
  })
})
