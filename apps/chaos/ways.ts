import { once } from 'node:events'
import { connect } from 'node:net'
import { InvalidArgumentError } from 'signalbox'
import { Proxy, type Fate } from './servers/proxy.js'

/** Default ports of the engines that have servers, by the scheme of the URL. */
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

/** A server named in a URL. */
interface Server {
  readonly host: string
  readonly port: number
}

/** The connections of one client to all its servers, each through its own proxy. */
class Way implements AsyncDisposable {
  readonly #proxies: readonly Proxy[]

  constructor(proxies: readonly Proxy[]) {
    this.#proxies = proxies
  }

  /** The addresses of the proxies, for the URL of the client. */
  get hosts(): string {
    return this.#proxies.map(({ host, port }) => `${host}:${port}`).join(',')
  }

  set requests(fate: Fate) {
    for (const proxy of this.#proxies) proxy.requests = fate
  }

  set replies(fate: Fate) {
    for (const proxy of this.#proxies) proxy.replies = fate
  }

  /** Delay of each direction, in milliseconds. */
  set delay(time: number) {
    for (const proxy of this.#proxies) proxy.delay = time
  }

  /** Maximum additional delay of each packet, chosen at random, in milliseconds. */
  set jitter(time: number) {
    for (const proxy of this.#proxies) Object.assign(proxy, { requestJitter: time, replyJitter: time })
  }

  /** Connections on which the client has sent text that matches this lose all later replies, but stay open. */
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

/** The ways of all clients to the servers. Each client has its own, if possible. */
export class Ways implements AsyncDisposable {
  readonly #url: string
  readonly #ways: readonly Way[]

  private constructor(url: string, ways: readonly Way[]) {
    this.#url = url
    this.#ways = ways
  }

  /**
   * Starts the proxies. A Hazelcast member sends its own address to its clients, so clients cannot have their own
   * proxies. One proxy serves all, on the port that the member is configured to announce; without that port there is
   * none.
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

  /** Whether all clients share one way. */
  get areOne(): boolean {
    return this.#ways.length === 1
  }

  /** Returns the way of a client. @param client its index, from 0. */
  of(client: number): Way {
    return this.#ways[client % this.#ways.length]!
  }

  /** Returns the URL that a client uses. */
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

/** @throws InvalidArgumentError if the proxy cannot listen on the port. */
async function proxyOn(port: number, server: Server): Promise<Proxy> {
  try {
    return await Proxy.start(server.port, { targetHost: server.host, port })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgumentError(`--proxy-port ${port} can't be used: ${reason}`, { cause: error })
  }
}

/** Whether a server listens at the address of a URL; false unless the URL names exactly one server. */
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

/**
 * Returns the servers that a URL names; none if the engine has no servers, or the URL names several Hazelcast members.
 */
function serversOf(url: string): readonly Server[] {
  const [, kind = '', , hosts = ''] = SERVERS.exec(url) ?? []
  const usual = PORTS[kind]
  if (usual === undefined) return []
  const found = hosts.split(',').map(each => SERVER.exec(each))
  // Each of several Hazelcast members announces all of them.
  if (found.includes(null) || (kind === 'hazelcast' && found.length > 1)) return []
  return found.map(match => ({ host: match![1]!, port: match![2] === undefined ? usual : Number(match![2]) }))
}
