import { expect, test } from 'vitest'
import { ZooKeeper } from 'signalbox-zookeeper'
import { soFar } from '../../packages/conformance/src/time.js'
import { until } from '../support/servers/until.js'
import { startLaggingEnsemble } from '../support/servers/zookeeper-ensemble.js'

test('a server that is behind returns old data; a linearizable read returns the newest', async () => {
  await using ensemble = await startLaggingEnsemble()
  const { leader, follower, link } = ensemble
  await using atLeader = await ZooKeeper.connect(leader.address)
  await using atFollower = await ZooKeeper.connect(follower.address)
  await atLeader.create('/value', 'old')
  await atFollower.sync()
  link.replies = 'hold'
  await atLeader.setData('/value', 'new')
  expect((await atFollower.getData('/value')).data.toString()).toBe('old')
  const fresh = atFollower.getData('/value', { linearizable: true })
  await until(() => link.withheldReplies > 0)
  expect(await soFar(fresh)).toBe('pending')
  link.replies = 'pass'
  expect((await fresh).data.toString()).toBe('new')
})
