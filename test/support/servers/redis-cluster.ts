import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { startRedis, type RedisServer } from './redis.js'
import { until } from './until.js'

const SLOTS = 16_384

/** Three masters that share the hash slots evenly, with or without a replica each. */
export class RedisCluster {
  /** The masters at the start. */
  readonly masters: readonly RedisServer[]
  /** All nodes, the masters at the start first. */
  readonly nodes: RedisServer[]
  /** `redis+cluster://` with every master. */
  readonly url: string

  constructor(masters: readonly RedisServer[], replicas: readonly RedisServer[]) {
    this.masters = masters
    this.nodes = [...masters, ...replicas]
    this.url = `redis+cluster://${masters.map(({ host, port }) => `${host}:${port}`).join(',')}`
  }

  /** Adds a master without slots. */
  async join(): Promise<RedisServer> {
    const [node] = await startNodes(1, {})
    this.nodes.push(node!)
    await meet(this.masters[0]!, node!)
    await this.settled(0)
    return node!
  }

  /** Returns the current master of the slot of this key. */
  async masterOf(key: string): Promise<RedisServer> {
    const slot = await this.slotOf(key)
    for (const node of this.nodes) {
      const own = String(await node.command('CLUSTER', 'NODES').catch(() => ''))
      if (servedSlots(own).some(([first, last]) => first <= slot && slot <= last)) return node
    }
    throw new Error(`No master serves slot ${slot}`)
  }

  /** Returns the replica of a master. For a moment, the cluster may count a restarted node as a master. */
  async replicaOf(master: RedisServer): Promise<RedisServer> {
    let found: RedisServer | undefined
    await until(async () => {
      const list = (await master.command('CLUSTER', 'REPLICAS', await idOf(master))) as string[]
      found = this.nodes.find(({ port }) => list.some(line => line.includes(`:${port}@`)))
      return found !== undefined
    })
    return found!
  }

  async slotOf(key: string): Promise<number> {
    const asked = this.nodes.map(node => node.command('CLUSTER', 'KEYSLOT', key))
    return (await Promise.any(asked)) as number
  }

  /**
   * Begins to move a slot to another master. From now on, the old one answers ASK for keys that it lacks.
   * {@link finishMoving} moves the keys and hands the slot over.
   */
  async beginMoving(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from))
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to))
  }

  /** Moves the keys that are in the slot now. */
  async moveKeys(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
    while (true) {
      const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
      if (keys.length === 0) break
      await from.command('MIGRATE', to.host, to.port, '', 0, 5000, 'KEYS', ...keys)
    }
  }

  async finishMoving(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
    await this.moveKeys(slot, from, to)
    const owner = await idOf(to)
    await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
    await from.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
    for (const master of this.masters)
      if (master !== to && master !== from) await master.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
  }

  /** Waits until all nodes see the same healthy cluster, and each replica is in step with its master. */
  async settled(replicas = this.nodes.length - this.masters.length): Promise<void> {
    await until(async () => {
      const views = await Promise.all(this.nodes.map(node => viewOf(node)))
      const [first] = views
      return (
        first?.length === this.nodes.length &&
        first.filter(line => line.includes('slave')).length === replicas &&
        views.every(view => view?.join() === first.join())
      )
    })
  }

  async kill(): Promise<void> {
    await Promise.all(this.nodes.map(node => node.kill()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

export interface RedisClusterOptions {
  /** Lines of redis.conf for every node. */
  readonly config?: readonly string[]
  /** Whether each master has a replica. */
  readonly replicated?: boolean
}

/** Starts three masters. All nodes see the whole cluster as healthy when the promise settles. */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const count = 3
  const masters = await startNodes(count, options)
  const bound = (index: number) => Math.floor((SLOTS * index) / count)
  await Promise.all(
    masters.map(async (master, index) => {
      await master.command('CLUSTER', 'ADDSLOTSRANGE', bound(index), bound(index + 1) - 1)
      await master.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    }),
  )
  const replicas = options.replicated === true ? await startNodes(count, options) : []
  const nodes = [...masters, ...replicas]
  for (const other of nodes.slice(1)) await meet(masters[0]!, other)
  const cluster = new RedisCluster(masters, replicas)
  await cluster.settled(0)
  for (const [index, replica] of replicas.entries())
    await replica.command('CLUSTER', 'REPLICATE', await idOf(masters[index]!))
  await cluster.settled()
  return cluster
}

async function startNodes(count: number, { config = [] }: RedisClusterOptions): Promise<RedisServer[]> {
  return Promise.all(
    Array.from({ length: count }, async () =>
      startRedis({
        config: [
          'cluster-enabled yes',
          `cluster-port ${await freePort()}`,
          'cluster-node-timeout 2000',
          'cluster-announce-ip 127.0.0.1',
          ...config,
        ],
      }),
    ),
  )
}

async function meet(one: RedisServer, other: RedisServer): Promise<void> {
  const busPort = ((await other.command('CONFIG', 'GET', 'cluster-port')) as string[])[1]!
  await one.command('CLUSTER', 'MEET', other.host, other.port, busPort)
}

/** Returns the nodes of the cluster as one node sees them, or undefined if it is not healthy. */
async function viewOf(node: RedisServer): Promise<string[] | undefined> {
  const info = String(await node.command('CLUSTER', 'INFO'))
  const replication = String(await node.command('INFO', 'replication'))
  const lines = String(await node.command('CLUSTER', 'NODES'))
    .trim()
    .split('\n')
  const isHealthy =
    info.includes('cluster_state:ok') &&
    info.includes(`cluster_slots_ok:${SLOTS}`) &&
    !lines.some(line => /handshake|noaddr|fail|disconnected/.test(line)) &&
    !replication.includes('master_link_status:down')
  if (!isHealthy) return undefined
  // The mark of the own line, and the times, depend on the node that is asked.
  const views = lines.map(line => {
    const [id, , flags, master, , , , , ...slots] = line.replace('myself,', '').split(' ')
    return [id, flags, master, ...slots].join(' ')
  })
  return views.sort()
}

async function idOf(master: RedisServer): Promise<string> {
  return (await master.command('CLUSTER', 'MYID')) as string
}

/** Returns the slots that the node with this list serves itself. */
function servedSlots(nodes: string): [number, number][] {
  const own = nodes.split('\n').find(line => line.includes('myself'))
  return [...(own ?? '').matchAll(/ (\d+)(?:-(\d+))?(?= |$)/g)]
    .slice(3)
    .map(([, first, last]) => [Number(first), Number(last ?? first)])
}
