import { open, type Box, type BoxOptions } from '../../../src/index.js'
import { RemoteBox } from '../file/remote-box.js'
import { Proxy } from '../../../apps/chaos/servers/proxy.js'
import { startRedis, type RedisServer, type RedisServerOptions } from '../servers/redis.js'

/** A server of one test, with boxes on it in this process and in others, and networks before it. All end together. */
export class RedisPlace implements AsyncDisposable {
  readonly server: RedisServer
  readonly #boxes: Box[] = []
  readonly #remote: RemoteBox[] = []
  readonly #networks: Proxy[] = []

  private constructor(server: RedisServer) {
    this.server = server
  }

  static async start(options?: RedisServerOptions): Promise<RedisPlace> {
    return new RedisPlace(await startRedis(options))
  }

  /** A box in this process. @param url of the server by default */
  async box(url = this.server.url, options?: BoxOptions): Promise<Box> {
    const box = await open(url, options)
    this.#boxes.push(box)
    return box
  }

  async boxes(count: number): Promise<Box[]> {
    return Promise.all(Array.from({ length: count }, () => this.box()))
  }

  /** A box in a process of its own. */
  async process(url = this.server.url): Promise<RemoteBox> {
    const remote = await RemoteBox.inProcess(url)
    this.#remote.push(remote)
    return remote
  }

  /** A network of its own between some clients and the server. */
  async network(): Promise<Proxy> {
    const network = await Proxy.start(this.server.port)
    this.#networks.push(network)
    return network
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Killing also ends one that is stopped.
    await Promise.all(this.#remote.map(remote => remote.kill()))
    // Boxes would wait for the answers of a server that stands still.
    await this.server.kill()
    await Promise.all(this.#networks.map(network => network[Symbol.asyncDispose]()))
    await Promise.all(this.#boxes.map(box => box.close()))
  }
}

/** The URL of a network, for a box behind it. */
export function through({ host, port }: Proxy): string {
  return `redis://${host}:${port}`
}
