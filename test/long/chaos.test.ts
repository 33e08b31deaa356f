import { beforeAll, describe, expect, test } from 'vitest'
import { chaosRun } from '../chaos-run.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { startHazelcast, TEST_CLUSTER } from '../servers/hazelcast.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'

const FAULTS = ['--faults', '12', '--processes', '3', '--lease', '1000', '--seconds', '120']
/** Enough for some that meet a client between its reading and its writing. */
const MORE_FAULTS = [...FAULTS, '--faults', '20']

/** No promise was broken, and enough was done for that to mean something. */
async function keeps(...args: readonly string[]): Promise<void> {
  const { report, findings, stderr } = await chaosRun(...args, ...FAULTS)
  console.log(report)
  expect({ findings, stderr }).toEqual({ findings: [], stderr: '' })
  expect(report.undecided).toBe(0)
  expect(report.recoveries.length).toBeGreaterThan(3)
  expect(Math.min(report.grants, report.transfers.applied, report.storeCalls)).toBeGreaterThan(20)
}

describe('under faults of clients and network', () => {
  test('ZooKeeper keeps its promises', async () => {
    await using server = await startZooKeeper()
    await keeps('--engine', `zookeeper://${server.address}/chaos?sessionTimeout=2s`)
  })

  test('Hazelcast keeps its promises', async () => {
    const publicPort = await freePort()
    await using server = await startHazelcast({ publicPort })
    const engine = `hazelcast://${server.address}/${TEST_CLUSTER}`
    await keeps('--engine', engine, '--proxy-port', String(publicPort))
  })
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
      const { status, report, findings } = await chaosRun(
        '--engine',
        server.url,
        '--peer',
        peer,
        ...MORE_FAULTS,
      )
      console.log(report.unfenced)
      expect(status).toBe(1)
      expect(findings.filter(message => /both held/.test(message))).not.toEqual([])
    },
  )
})
