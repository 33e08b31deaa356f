import { onTestFinished } from 'vitest'
import { startHazelcast, TEST_CLUSTER } from './hazelcast.js'
import { startPostgres } from './postgres.js'
import { startRedis } from './redis.js'
import { startZooKeeper } from './zookeeper.js'

interface Running {
  readonly server: { kill(): Promise<void> }
  readonly url: string
}

const starts = {
  async Redis(): Promise<Running> {
    const server = await startRedis()
    return { server, url: server.url }
  },
  async PostgreSQL(): Promise<Running> {
    const server = await startPostgres()
    return { server, url: server.url }
  },
  async ZooKeeper(): Promise<Running> {
    const server = await startZooKeeper()
    return { server, url: `zookeeper://${server.address}/app` }
  },
  async Hazelcast(): Promise<Running> {
    const server = await startHazelcast()
    return { server, url: `hazelcast://${server.address}/${TEST_CLUSTER}` }
  },
}

/** An engine with a server. */
export type ServedEngine = keyof typeof starts

export const servedEngines = Object.keys(starts) as readonly ServedEngine[]

/** Starts a server of an engine, which ends with the test. Returns its URL. */
export async function startEngine(engine: ServedEngine): Promise<string> {
  const { server, url } = await starts[engine]()
  onTestFinished(() => server.kill())
  return url
}
