import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { pause } from '../../packages/conformance/src/time.js'
import { shiftWallClock } from '../../packages/conformance/src/wall-clock.js'
import { open } from '../../src/open.js'
import { NETWORK_FAULTS, type FaultKind } from '../../apps/chaos/plan.js'
import type { Report } from '../../apps/chaos/report.js'
import { chaosRun } from '../support/chaos-run.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startZooKeeperEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { ZooKeeperServer } from '../support/servers/zookeeper.js'

const FAULTS = ['--faults', '12', '--processes', '3', '--lease', '1000', '--seconds', '120']
/** Enough faults that some hit a client between its read and its write. */
const MORE_FAULTS = [...FAULTS, '--faults', '20']
/** Lease of locks that must be renewed in time, in milliseconds. */
const LEASE = 3000

/** Asserts that a run broke no promise and did enough work to be meaningful. Returns its report. */
async function keeps(...args: readonly string[]): Promise<Report> {
  const report = await unbroken(...args)
  const { grants, transfers, storeCalls } = report
  expect(Math.min(grants, transfers.applied, storeCalls)).toBeGreaterThan(20)
  return report
}

/** Asserts that a run broke no promise, and returns its report. */
async function unbroken(...args: readonly string[]): Promise<Report> {
  const { report, findings, stderr } = await chaosRun(...FAULTS, ...args)
  const { faultList: _faults, ...figures } = report
  console.log(figures)
  expect({ findings, stderr }).toEqual({ findings: [], stderr: '' })
  expect(report.undecided).toBe(0)
  expect(report.faults).toBeGreaterThan(6)
  // All clients of a Hazelcast member share one route, so a network fault affects every waiter.
  expect(report.orders).toBeGreaterThan(report.engine === 'hazelcast' ? 40 : 200)
  return report
}

describe('under faults of clients, network and server', () => {
  test('Redis keeps its promises', async () => {
    const port = await freePort()
    const folder = reapedFolder('chaos')
    const command = `redis-server --port ${port} --bind 127.0.0.1 --appendonly yes --appendfsync always --dir ${folder}`
    await keeps('--engine', `redis://127.0.0.1:${port}`, '--server', command)
  })

  test('PostgreSQL keeps its promises', async () => {
    const server = await startPostgres()
    await server.kill()
    const { faultList } = await keeps(
      // With this seed, each of the expected kinds of faults occurs.
      ...['--engine', server.url, '--server', server.writeScript(), ...MORE_FAULTS, '--seed', '28'],
    )
    const kinds = new Set(faultList.map(({ kind }) => kind))
    for (const kind of ['jitter', 'lose hints', 'hold values', 'kill server']) expect(kinds).toContain(kind)
  })

  test('ZooKeeper keeps its promises', async () => {
    const server = new ZooKeeperServer(await freePort(), reapedFolder('zookeeper'), {})
    const engine = `zookeeper://${server.address}/chaos?sessionTimeout=2s`
    await keeps('--engine', engine, '--server', server.writeScript())
  })

  test('Hazelcast keeps its promises', async () => {
    const publicPort = await freePort()
    // A single member loses all its data when it is killed.
    await using server = await startHazelcast({ publicPort })
    const engine = `hazelcast://${server.address}/${TEST_CLUSTER}`
    await keeps('--engine', engine, '--proxy-port', String(publicPort))
  })
})

describe('of several servers', () => {
  test('Redis Cluster keeps its promises, over all masters, under faults of clients', async () => {
    await using cluster = await startRedisCluster()
    await keeps('--engine', cluster.url)
    for (const master of cluster.masters) expect(await master.command('DBSIZE')).toBeGreaterThan(0)
  })

  test('a quorum keeps those of locks under faults of clients and of their network', async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()])
    onTestFinished(async () => {
      await Promise.all(servers.map(server => server.kill()))
    })
    const hosts = servers.map(({ url }) => new URL(url).host).join(',')
    const { faultList, grants } = await unbroken('--engine', `redis-quorum://${hosts}`, ...MORE_FAULTS)
    expect(faultList.some(({ kind }) => NETWORK_FAULTS.has(kind as FaultKind))).toBe(true)
    expect(grants).toBeGreaterThan(20)
  })

  test('an ensemble of ZooKeeper keeps its promises under faults of clients and of their network', async () => {
    await using ensemble = await startZooKeeperEnsemble()
    await keeps('--engine', `zookeeper://${ensemble.address}/chaos?sessionTimeout=2s`)
  })
})

test('without faults, the order of arrival is checked and kept', async () => {
  await using server = await startRedis()
  // The run without faults lasts for half a lease.
  const { report, findings } = await chaosRun('--engine', server.url, '--faults', '0', '--lease', '4000')
  expect(findings).toEqual([])
  expect(report.orders).toBeGreaterThan(200)
})

describe('the same faults', () => {
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis()
    return () => server.kill()
  })

  test.each(['redlock', 'redis-semaphore'])(
    'make %s hold a lock twice, and the harness says so',
    async peer => {
      // It is random whether a fault hits a client that holds the lock.
      let overlaps: string[] = []
      for (let tries = 0; tries < 4 && overlaps.length === 0; tries++) {
        const run = await chaosRun('--engine', server.url, '--peer', peer, ...MORE_FAULTS)
        console.log(run.report.unfenced)
        overlaps = run.findings.filter(message => /both held/.test(message))
      }
      expect(overlaps).not.toEqual([])
    },
  )

  test('with a wall clock that is set back, redlock holds a lost lock, and Signalbox renews', async () => {
    onTestFinished(() => shiftWallClock(0))
    const client = new Redis(server.url)
    onTestFinished(() => client.disconnect())
    await using box = await open(server.url)
    const redlock = new Redlock([client], {
      retryCount: 0,
      retryDelay: 0,
      retryJitter: 0,
      automaticExtensionThreshold: LEASE / 2,
    })
    const peer = { isTaken: false, isTold: true }
    const using = redlock.using(['peer'], LEASE, async signal => {
      await pause(2 * LEASE)
      peer.isTaken = (await client.set('peer', 'another', 'PX', 10 * LEASE, 'NX')) === 'OK'
      peer.isTold = signal.aborted
    })
    // There is nothing to release any more.
    const ended = expect(using).rejects.toThrow()
    const asked = box.mutex('ours').acquire({ lease: LEASE })
    // Neither client has received its answer yet.
    shiftWallClock(-3_600_000)
    const grant = await asked
    await ended
    expect(peer).toEqual({ isTaken: true, isTold: false })
    grant.assertHeld()
    expect(await client.set('ours', 'another', 'PX', LEASE, 'NX')).toBeNull()
    await grant.release()
  })
})
