import { startRedis, type RedisServer } from './redis.js'
import { until } from './until.js'

/** A master with one replica, watched by one Sentinel that may fail over alone. */
export class RedisWithSentinel {
  /** The master at the start. */
  readonly master: RedisServer
  readonly replica: RedisServer
  readonly sentinel: RedisServer
  /** `redis+sentinel://…/name`. */
  readonly url: string
  readonly name = 'trains'

  constructor(master: RedisServer, replica: RedisServer, sentinel: RedisServer) {
    this.master = master
    this.replica = replica
    this.sentinel = sentinel
    this.url = `redis+sentinel://127.0.0.1:${sentinel.port}/${this.name}`
  }

  /** Makes the Sentinel promote the replica, and waits until it reports the replica as the master. */
  async failover(): Promise<void> {
    const before = await this.masterPort()
    await until(async () => {
      if ((await this.masterPort()) !== before) return true
      // On a busy machine, a Sentinel aborts a failover whose step takes too long, or refuses one for lack of a pong.
      const master = (await this.sentinel.command('SENTINEL', 'MASTER', this.name)) as string[]
      const [port, flags] = ['port', 'flags'].map(name => master[master.indexOf(name) + 1]!)
      if (Number(port) === before && !flags!.includes('failover_in_progress'))
        await this.sentinel.command('SENTINEL', 'FAILOVER', this.name).catch(() => undefined)
      return false
    })
  }

  /** Returns the port of the master that the Sentinel reports. */
  async masterPort(): Promise<number> {
    const answer = (await this.sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)) as string[]
    return Number(answer[1])
  }

  async kill(): Promise<void> {
    await this.sentinel.kill()
    await Promise.all([this.master.kill(), this.replica.kill()])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

/**
 * Starts a master, a replica that is in step with it, and a Sentinel that knows both.
 * @param password of master and replica; the Sentinel itself takes none
 */
export async function startRedisWithSentinel({
  password,
}: { password?: string } = {}): Promise<RedisWithSentinel> {
  const secret = password === undefined ? [] : [`requirepass ${password}`, `masterauth ${password}`]
  const master = await startRedis({ config: secret })
  const replica = await startRedis({ config: [...secret, `replicaof 127.0.0.1 ${master.port}`] })
  const asked = await master.connection()
  if (password !== undefined) await asked.command('AUTH', password)
  await until(async () => /state=online/.test(String(await asked.command('INFO', 'replication'))))
  asked.close()
  const sentinel = await startRedis({
    sentinel: true,
    config: [
      `sentinel monitor trains 127.0.0.1 ${master.port} 1`,
      'sentinel down-after-milliseconds trains 1000',
      'sentinel failover-timeout trains 5000',
      ...(password === undefined ? [] : [`sentinel auth-pass trains ${password}`]),
    ],
  })
  // It can promote only a replica that it has contacted itself.
  await until(async () => {
    const [known] = (await sentinel.command('SENTINEL', 'REPLICAS', 'trains')) as string[][]
    return known?.[known.indexOf('master-link-status') + 1] === 'ok'
  })
  return new RedisWithSentinel(master, replica, sentinel)
}
