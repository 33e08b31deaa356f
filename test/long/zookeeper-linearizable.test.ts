import { expect, test } from 'vitest'
import { ZooKeeper } from '../../src/zookeeper/index.js'
import { soFar } from '../../src/conformance/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../servers/until.js'
import { startZooKeeperEnsemble } from '../servers/zookeeper-ensemble.js'

test('a server that is behind reads what was; a linearizable read waits for what is', async () => {
  const links = new Map<string, Proxy>()
  await using ensemble = await startZooKeeperEnsemble({}, async (from, to, port) => {
    const proxy = await Proxy.start(port)
    links.set(`${from}-${to}`, proxy)
    return proxy.port
  })
  const leader = await ensemble.leader()
  const follower = await ensemble.follower()
  const [from, to] = [follower, leader].map(server => ensemble.servers.indexOf(server))
  await using atLeader = await ZooKeeper.connect(leader.address)
  await using atFollower = await ZooKeeper.connect(follower.address)
  await atLeader.create('/value', 'old')
  await atFollower.sync()
  const link = links.get(`${from!}-${to!}`)!
  link.replies = 'hold'
  await atLeader.setData('/value', 'new')
  expect((await atFollower.getData('/value')).data.toString()).toBe('old')
  const fresh = atFollower.getData('/value', { linearizable: true })
  await until(() => link.withheldReplies > 0)
  expect(await soFar(fresh)).toBe('pending')
  link.replies = 'pass'
  expect((await fresh).data.toString()).toBe('new')
})
