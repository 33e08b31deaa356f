import { once } from 'node:events'
import { connect } from 'node:net'
import { InvalidArgumentError } from 'signalbox'
import { Proxy, type Fate } from './servers/proxy.js'

/** Engines whose clients know their servers from the URL alone, with the port of one that names none. */
const PORTS: Readonly<Record<string, number>> = {
  redis: 6379,
  'redis-quorum': 6379,
  zookeeper: 2181,
  hazelcast: 5701,
  postgres: 5432,
  postgresql: 5432,
}

const SERVERS = /^([a-z-]+):\/\/([^/?#@]*@)?([^/?#@]+)(?=[/?#]|$)/
const SERVER = /^([\w.-]+)(?::(\d+))?$/

/** A server as a URL names it. */
interface Server {
  readonly host: string
  readonly port: number
}

/** The way of one client to all its servers, each through a proxy of its own. */
class Way implements AsyncDisposable {
  readonly #proxies: readonly Proxy[]

  constructor(proxies: readonly Proxy[]) {
    this.#proxies = proxies
  }

  /** The servers as the client is to know them. */
  get hosts(): string {
    return this.#proxies.map(({ host, port }) => `${host}:${port}`).join(',')
  }

  set requests(fate: Fate) {
    for (const proxy of this.#proxies) proxy.requests = fate
  }

  set replies(fate: Fate) {
    for (const proxy of this.#proxies) proxy.replies = fate
  }

  /** How long each direction takes, in milliseconds. */
  set delay(time: number) {
    for (const proxy of this.#proxies) proxy.delay = time
  }

  /** Up to this comes on top for each packet, at random, in milliseconds. */
  set jitter(time: number) {
    for (const proxy of this.#proxies) Object.assign(proxy, { requestJitter: time, replyJitter: time })
  }

  /** Connections on which the client has said this lose all replies from then on, and stay open. */
  set mute(said: RegExp | undefined) {
    for (const proxy of this.#proxies) proxy.mute = said
  }

  cut(): void {
    for (const proxy of this.#proxies) proxy.cut()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map(proxy => proxy[Symbol.asyncDispose]()))
  }
}

/** The ways from the clients to the servers: each has one of its own, where that is possible. */
export class Ways implements AsyncDisposable {
  readonly #url: string
  readonly #ways: readonly Way[]

  private constructor(url: string, ways: readonly Way[]) {
    this.#url = url
    this.#ways = ways
  }

  /**
   * Starts the proxies. A Hazelcast member sends its clients its own address, so they can't be led through proxies of
   * their own: there is one for all, on the port that the member was configured to name, and without that port none.
   */
  static async start(url: string, clients: number, proxyPort: number | undefined): Promise<Ways> {
    const servers = serversOf(url)
    if (proxyPort !== undefined) {
      if (servers.length !== 1)
        throw new InvalidArgumentError(`${url} names no single server that a proxy could lead to`)
      return new Ways(url, [new Way([await proxyOn(proxyPort, servers[0]!)])])
    }
    if (servers.length === 0 || url.startsWith('hazelcast:')) return new Ways(url, [])
    const begin = async (): Promise<Way> =>
      new Way(await Promise.all(servers.map(({ host, port }) => Proxy.start(port, { targetHost: host }))))
    return new Ways(url, await Promise.all(Array.from({ length: clients }, begin)))
  }

  /** Whether the network can be disturbed. */
  get exist(): boolean {
    return this.#ways.length > 0
  }

  /** Whether all clients have the same way. */
  get areOne(): boolean {
    return this.#ways.length === 1
  }

  /** The way of a client, counted from 0. */
  of(client: number): Way {
    return this.#ways[client % this.#ways.length]!
  }

  /** The URL that a client uses. */
  url(client: number): string {
    if (!this.exist) return this.#url
    return this.#url.replace(
      SERVERS,
      (_, kind: string, login: string | undefined) => `${kind}://${login ?? ''}${this.of(client).hosts}`,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ways.map(way => way[Symbol.asyncDispose]()))
  }
}

/** @throws InvalidArgumentError when the port can't be listened on. */
async function proxyOn(port: number, server: Server): Promise<Proxy> {
  try {
    return await Proxy.start(server.port, { targetHost: server.host, port })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgumentError(`--proxy-port ${port} can't be used: ${reason}`, { cause: error })
  }
}

/** Whether a server listens where the one is that a URL names; false when it names no single one. */
export async function isServed(url: string): Promise<boolean> {
  const [server, ...others] = serversOf(url)
  if (!server || others.length > 0) return false
  const socket = connect(server.port, server.host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** The servers that a URL names; none where the engine sends its clients the addresses of servers. */
function serversOf(url: string): readonly Server[] {
  const [, kind = '', , hosts = ''] = SERVERS.exec(url) ?? []
  const usual = PORTS[kind]
  if (usual === undefined) return []
  const found = hosts.split(',').map(each => SERVER.exec(each))
  // Each of several members of Hazelcast names all of them.
  if (found.includes(null) || (kind === 'hazelcast' && found.length > 1)) return []
  return found.map(match => ({ host: match![1]!, port: match![2] === undefined ? usual : Number(match![2]) }))
}
