import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { deadHolders } from '../../src/conformance/dead-holders.js'
import { exclusion } from '../../src/conformance/exclusion.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'
import { givingUp } from '../../src/conformance/giving-up.js'
import { order } from '../../src/conformance/order.js'
import { release } from '../../src/conformance/release.js'
import { safeState } from '../../src/conformance/safe-state.js'
import { waking } from '../../src/conformance/waking.js'
import { wholeness } from '../../src/conformance/wholeness.js'
import { openZooKeeper } from '../../src/engines/zookeeper/open.js'
import { ZooKeeper } from '../../src/engines/zookeeper/client/index.js'
import { contractParts } from '../contract/suite.js'
import { zookeeper } from '../contract/zookeeper-fixture.js'
import { startLaggingEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { until } from '../support/servers/until.js'

/** How long each way takes between one follower and the leader: milliseconds. */
const LAG = 10

let shared: ReturnType<typeof startLaggingEnsemble> | undefined

/** The ensemble of this file, of which one server always knows later what the others know. */
function ensemble(): ReturnType<typeof startLaggingEnsemble> {
  return (shared ??= startLaggingEnsemble().then(started => {
    started.link.delay = LAG
    return started
  }))
}

afterAll(async () => {
  await (await shared)?.[Symbol.asyncDispose]()
})

/** The ZooKeeper engine with each box of a place on another server than the one before it. */
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
      engine: () => openZooKeeper(`zookeeper://${servers[boxes++ % servers.length]!}${path}`),
      close: () => undefined,
    }
  },
}

// What servers could disagree about. The rest is the same on whichever server.
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
