import { freePort } from './free-port.js'
import { startRedis, type RedisServer } from './redis.js'
import { until } from './until.js'

const SLOTS = 16_384

/** Masters that share the hash slots evenly, without replicas. */
export class RedisCluster {
  readonly masters: readonly RedisServer[]
  /** `redis+cluster://` with every master. */
  readonly url: string

  constructor(masters: readonly RedisServer[]) {
    this.masters = masters
    this.url = `redis+cluster://${masters.map(({ host, port }) => `${host}:${port}`).join(',')}`
  }

  /** The master that serves the slot of this key. */
  async masterOf(key: string): Promise<RedisServer> {
    const slot = await this.slotOf(key)
    for (const master of this.masters) {
      const own = (await master.command('CLUSTER', 'NODES')) as string
      if (servedSlots(own).some(([first, last]) => first <= slot && slot <= last)) return master
    }
    throw new Error(`No master serves slot ${slot}`)
  }

  async slotOf(key: string): Promise<number> {
    return (await this.masters[0]!.command('CLUSTER', 'KEYSLOT', key)) as number
  }

  /**
   * Begins to move a slot to another master: from now on the old one answers ASK for keys that it hasn't. The keys are
   * moved and the slot is handed over by {@link finishMoving}.
   */
  async beginMoving(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from))
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to))
  }

  async finishMoving(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
    while (true) {
      const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
      if (keys.length === 0) break
      await from.command('MIGRATE', to.host, to.port, '', 0, 5000, 'KEYS', ...keys)
    }
    const owner = await idOf(to)
    await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
    await from.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
    for (const master of this.masters)
      if (master !== to && master !== from) await master.command('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
  }

  async kill(): Promise<void> {
    await Promise.all(this.masters.map(master => master.kill()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

/** Starts three masters; all of them see the whole cluster as sound when the promise settles. */
export async function startRedisCluster({
  config = [],
}: { config?: readonly string[] } = {}): Promise<RedisCluster> {
  const count = 3
  const masters = await Promise.all(
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
  const bound = (index: number) => Math.floor((SLOTS * index) / count)
  await Promise.all(
    masters.map(async (master, index) => {
      await master.command('CLUSTER', 'ADDSLOTSRANGE', bound(index), bound(index + 1) - 1)
      await master.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    }),
  )
  for (const other of masters.slice(1)) {
    const busPort = ((await other.command('CONFIG', 'GET', 'cluster-port')) as string[])[1]!
    await masters[0]!.command('CLUSTER', 'MEET', other.host, other.port, busPort)
  }
  await Promise.all(masters.map(master => until(() => seesAll(master, count))))
  return new RedisCluster(masters)
}

async function seesAll(master: RedisServer, count: number): Promise<boolean> {
  const info = (await master.command('CLUSTER', 'INFO')) as string
  const nodes = (await master.command('CLUSTER', 'NODES')) as string
  const isKnown =
    nodes.trim().split('\n').length === count && !/handshake|noaddr|fail|disconnected/.test(nodes)
  return isKnown && info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOTS}`)
}

async function idOf(master: RedisServer): Promise<string> {
  return (await master.command('CLUSTER', 'MYID')) as string
}

/** The slots that the node which printed this list serves itself. */
function servedSlots(nodes: string): [number, number][] {
  const own = nodes.split('\n').find(line => line.includes('myself'))
  return [...(own ?? '').matchAll(/ (\d+)(?:-(\d+))?(?= |$)/g)]
    .slice(3)
    .map(([, first, last]) => [Number(first), Number(last ?? first)])
}
