import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { deadHolders } from '../../packages/conformance/src/dead-holders.js'
import { exclusion } from '../../packages/conformance/src/exclusion.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { givingUp } from '../../packages/conformance/src/giving-up.js'
import { order } from '../../packages/conformance/src/order.js'
import { release } from '../../packages/conformance/src/release.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'
import { waking } from '../../packages/conformance/src/waking.js'
import { wholeness } from '../../packages/conformance/src/wholeness.js'
import { openZooKeeper } from '../../packages/zookeeper/src/engine/open.js'
import { ZooKeeper } from 'signalbox-zookeeper'
import { contractParts } from '../contract/suite.js'
import { zookeeper } from '../contract/zookeeper-fixture.js'
import { startLaggingEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { until } from '../support/servers/until.js'

/** Delay of messages in each direction between one follower and the leader, in milliseconds. */
const LAG = 10

let shared: ReturnType<typeof startLaggingEnsemble> | undefined

/** Returns the ensemble of this file. One of its servers always lags behind the others. */
function ensemble(): ReturnType<typeof startLaggingEnsemble> {
  return (shared ??= startLaggingEnsemble().then(started => {
    started.link.delay = LAG
    return started
  }))
}

afterAll(async () => {
  await (await shared)?.[Symbol.asyncDispose]()
})

/** The ZooKeeper engine. Consecutive boxes of a place use different servers. */
const members: EngineFixture = {
  ...zookeeper,
  name: 'zookeeper with boxes on different members of an ensemble',
  async start() {
    const { leader, follower, other } = await ensemble()
    const servers = [follower, leader, other].map(({ address }) => address)
    const path = `/${randomUUID().slice(0, 8)}?sessionTimeout=4s`
    let boxes = 0
    return {
      url: `zookeeper://${servers.join(',')}${path}`,
      engine: () =>
        Promise.resolve(openZooKeeper(`zookeeper://${servers[boxes++ % servers.length]!}${path}`)),
      close: () => undefined,
    }
  },
}

// Runs only checks in which servers could disagree. The others give the same result on any server.
contractParts(members, exclusion, order, waking, wholeness, release, givingUp, deadHolders, safeState)

test('the first box of each place is at a server that returns old data', async () => {
  const { leader, follower } = await ensemble()
  await using atLeader = await ZooKeeper.connect(leader.address)
  await using atFollower = await ZooKeeper.connect(follower.address)
  let count = 0
  await until(async () => {
    const path = `/late-${++count}`
    await atLeader.create(path, '')
    return (await atFollower.exists(path)) === undefined
  })
  expect((await atFollower.exists(`/late-${count}`, { linearizable: true }))?.version).toBe(0)
})
