import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Client } from 'hazelcast-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { startChild } from '../contract/child.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'

/** The calls of the program. Each succeeds after a stop. */
const CALLS = ['acquire', 'tryAcquire', 'get', 'put', 'transaction', 'wait']

interface Thaw {
  /** URL of the place for this test. */
  readonly url: string
  /** URL of the place for the program, and the client that it uses. */
  readonly through?: string
  readonly client?: 'url' | 'pool' | 'sql'
  /**
   * Resolves when the connections of the stopped program have ended, or when the server has ended its session. Then the
   * lock `mark KEY` is free.
   */
  sever(key: string): Promise<unknown>
}

/** Expects that this call of a program succeeds although the program was stopped and lost its connections. */
async function succeeds(call: string, { url, through = url, client = 'url', sever }: Thaw): Promise<void> {
  const key = randomUUID()
  await using near = await open(url)
  const held = call === 'wait' ? await near.mutex(key).acquire() : undefined
  using child = startChild('build/test/integration/thawed', through, client, call, key)
  await child.printed('stopped')
  await until('it is stopped', () => / T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8')))
  // After a shorter stop, the box does not check whether its connections have ended, and it can't repeat a `put`.
  if (call === 'put') await pause(100)
  await sever(key)
  // No wake-up reaches the waiter.
  await held?.release()
  child.kill('SIGCONT')
  const { stdout, stderr } = await child.end()
  const sum = call === 'transaction' ? 'sum: 2\n' : ''
  expect({ stdout, stderr }).toEqual({ stdout: `stopped\ndone\n${sum}`, stderr: '' })
}

describe.runIf(process.platform === 'linux')('the first call of a thawed process succeeds', () => {
  describe('on PostgreSQL', () => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server.kill())

    const all = [...CALLS, 'limiter.acquire']
    const clients = (['url', 'pool', 'sql'] as const).flatMap(client => all.map(call => ({ client, call })))

    test.concurrent.each(clients)('$call, by $client, after its connections broke', async given => {
      const { url, address } = server
      await using proxy = await Proxy.start(address.port)
      const through = url.replace(`:${address.port}`, `:${proxy.port}`)
      const sever = async (): Promise<void> => proxy.cut()
      await succeeds(given.call, { url, through, client: given.client, sever })
    })

    test.concurrent.each(clients)('$call, by $client, after the server ended them', async given => {
      const name = randomUUID()
      const pool = server.pool()
      const sever = async (): Promise<void> => {
        const ended =
          'select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = $1'
        await pool.query(ended, [name])
      }
      const through = `${server.url}?application_name=${name}`
      await succeeds(given.call, { url: server.url, through, client: given.client, sever })
      await pool.end()
    })
  })

  describe('on ZooKeeper, in a new session', () => {
    let server: ZooKeeperServer
    beforeAll(async () => {
      server = await startZooKeeper()
    })
    afterAll(() => server.kill())

    test.concurrent.each(CALLS)('%s', async call => {
      const url = `zookeeper://${server.address}/${randomUUID()}`
      await succeeds(call, {
        url,
        // Shortens the timeout only for the program, so that no other box loses its session on a busy machine.
        through: `${url}?sessionTimeout=2s`,
        async sever(key) {
          await using box = await open(url)
          await box.mutex(`mark ${key}`).run(() => undefined)
        },
      })
    })
  })

  describe('on Hazelcast, whose members have given its client up', () => {
    let server: HazelcastServer
    beforeAll(async () => {
      server = await startHazelcast({
        properties: {
          'hazelcast.client.max.no.heartbeat.seconds': '10',
          'hazelcast.client.cleanup.period.millis': '500',
        },
      })
    })
    afterAll(() => server.kill())

    test.concurrent.each(CALLS)('%s', async call => {
      const map = randomUUID()
      await succeeds(call, {
        url: `hazelcast://${server.address}/${TEST_CLUSTER}?map=${map}`,
        async sever(key) {
          const client = await Client.newHazelcastClient({
            clusterName: TEST_CLUSTER,
            network: { clusterMembers: [server.address] },
            properties: { 'hazelcast.logging.level': 'OFF' },
          })
          const locks = await client.getMap(map)
          expect(await locks.tryLock(`mark ${key}`, 40_000)).toBe(true)
          await client.shutdown()
        },
      })
    })
  })
})
