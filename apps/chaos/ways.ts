import { once } from 'node:events'
import { connect } from 'node:net'
import { InvalidArgumentError } from 'signalbox'
import { Proxy } from './servers/proxy.js'

/** Engines on one server that can stand behind a proxy, with the port of a URL that names none. */
const PORTS: Readonly<Record<string, number>> = { redis: 6379, zookeeper: 2181, hazelcast: 5701 }

const ONE_SERVER = /^(redis|zookeeper|hazelcast):\/\/([^/?#@]*@)?([\w.-]+)(?::(\d+))?(?=[/?#]|$)/

/** The ways from the clients to the server: each goes through a proxy of its own, where that is possible. */
export class Ways implements AsyncDisposable {
  readonly #url: string
  readonly #proxies: readonly Proxy[]

  private constructor(url: string, proxies: readonly Proxy[]) {
    this.#url = url
    this.#proxies = proxies
  }

  /**
   * Starts the proxies. A Hazelcast member tells its clients where it is, so they can't be led through proxies of their
   * own: there is one for all, on the port that the member was told to name, and without that port none.
   */
  static async start(url: string, clients: number, proxyPort: number | undefined): Promise<Ways> {
    const server = serverOf(url)
    if (proxyPort !== undefined) {
      if (!server) throw new InvalidArgumentError(`${url} names no single server that a proxy could lead to`)
      return new Ways(url, [await proxyOn(proxyPort, server)])
    }
    if (!server || server.kind === 'hazelcast') return new Ways(url, [])
    const { host: targetHost, port } = server
    const starts = Array.from({ length: clients }, () => Proxy.start(port, { targetHost }))
    return new Ways(url, await Promise.all(starts))
  }

  /** Whether the network can be disturbed. */
  get exist(): boolean {
    return this.#proxies.length > 0
  }

  /** Whether all clients have the same way. */
  get areOne(): boolean {
    return this.#proxies.length === 1
  }

  /** The proxy of a client, counted from 0. */
  proxy(client: number): Proxy {
    return this.#proxies[client % this.#proxies.length]!
  }

  /** The URL that a client uses. */
  url(client: number): string {
    if (!this.exist) return this.#url
    return this.#url.replace(
      ONE_SERVER,
      (_, kind: string, login: string | undefined) =>
        `${kind}://${login ?? ''}127.0.0.1:${this.proxy(client).port}`,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map(proxy => proxy[Symbol.asyncDispose]()))
  }
}

/** @throws InvalidArgumentError when the port can't be listened on. */
async function proxyOn(port: number, server: { host: string; port: number }): Promise<Proxy> {
  try {
    return await Proxy.start(server.port, { targetHost: server.host, port })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgumentError(`--proxy-port ${port} can't be used: ${reason}`, { cause: error })
  }
}

/** Whether somebody listens where the one server is that a URL names; false when it names no single one. */
export async function isServed(url: string): Promise<boolean> {
  const server = serverOf(url)
  if (!server) return false
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

/** The one server that a URL names, if it does. */
function serverOf(url: string): { kind: string; host: string; port: number } | undefined {
  const [, kind, , host, port] = ONE_SERVER.exec(url) ?? []
  if (kind === undefined) return undefined
  return { kind, host: host!, port: port === undefined ? PORTS[kind]! : Number(port) }
}
