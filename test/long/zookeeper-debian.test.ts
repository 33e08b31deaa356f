import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { queued, soFar } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { ZooKeeper } from 'signalbox-zookeeper'
import { contractSuite } from '../contract/suite.js'
import { zookeeperOn } from '../contract/zookeeper-fixture.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

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

  // Version 3.8 does not return the stat of the nodes that such a transaction creates.
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

test('an upgrade within the session loses nothing', async () => {
  await using old = await start()
  const url = `zookeeper://${old.address}/place?sessionTimeout=60s`
  await using one = await open(url)
  await using other = await open(url)
  const held = await one.mutex('key').acquire({ lease: '1h' })
  const waiting = other.mutex('key').acquire()
  await queued(one, 'key', 1)
  await one.store('s').put('key', 'kept')
  const states: string[] = []
  await using zk = await ZooKeeper.connect(old.address, { sessionTimeout: '60s' })
  zk.onState(state => states.push(state))
  const told: string[] = []
  await zk.getData('/place/store/s%2Fkey', { watch: ({ type }) => void told.push(type) })

  await old.stop()
  held.assertHeld()
  await using server = old.upgraded()
  await server.start()
  expect(await server.say('srvr')).toContain('version: 3.9.')

  expect((await other.store('s').get('key'))!.value).toBe('kept')
  held.assertHeld()
  expect(await soFar(waiting)).toBe('pending')
  await one.store('s').put('key', 'new')
  await until(() => told.length > 0)
  expect(told).toEqual(['changed'])
  expect(new Set(states)).toEqual(new Set(['suspended', 'connected']))
  await held.release()
  const next = await waiting
  expect(next.token).toBeGreaterThan(held.token)
  await next.release()
})

contractSuite(zookeeperOn('zookeeper 3.8', start))
