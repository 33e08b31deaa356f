import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { ZooKeeper } from '../../src/zookeeper/index.js'
import { contractSuite } from '../contract/suite.js'
import { zookeeperOn } from '../contract/zookeeper-fixture.js'
import { startZooKeeper } from '../servers/zookeeper.js'

const start = () => startZooKeeper({ isDebian: true })

beforeAll(() => {
  const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [setup, 'debian-zookeeper'], { stdio: ['ignore', 2, 2] })
  expect(status).toBe(0)
})

test('the server is the older one', async () => {
  await using server = await start()
  expect(await server.say('srvr')).toContain('version: 3.8.')
  await using zk = await ZooKeeper.connect(server.address)
  await zk.create('/numbered', '', { container: true })
  const { path } = await zk.create('/numbered/node-', 'data', { ephemeral: true, sequential: true })
  expect((await zk.getData(path, { linearizable: true })).data.toString()).toBe('data')

  // It does not tell there what is known of the nodes that it creates.
  const states: string[] = []
  zk.onState(state => states.push(state))
  const numbered = { ephemeral: true, sequential: true }
  const answers = await zk
    .transaction()
    .create('/numbered/node-', 'data', numbered)
    .setData('/numbered', 'of numbers')
    .create('/numbered/more', 'data')
    .commit()
  expect(answers).toMatchObject([
    { path: '/numbered/node-0000000001', stat: undefined },
    { version: 1 },
    { path: '/numbered/more', stat: undefined },
  ])
  expect(states).toEqual([])
})

contractSuite(zookeeperOn('zookeeper 3.8', start))
