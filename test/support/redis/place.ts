import { open, type Box, type BoxOptions } from '../../../src/index.js'
import { Proxy } from '../../../apps/chaos/servers/proxy.js'
import { startRedis, type RedisServer, type RedisServerOptions } from '../servers/redis.js'

/** A server of one test, with boxes, and networks in front of it. All end together. */
export class RedisPlace implements AsyncDisposable {
  readonly server: RedisServer
  readonly #boxes: Box[] = []
  readonly #networks: Proxy[] = []

  private constructor(server: RedisServer) {
    this.server = server
  }

  static async start(options?: RedisServerOptions): Promise<RedisPlace> {
    return new RedisPlace(await startRedis(options))
  }

  /** Opens a box in this process. @param url default: that of the server */
  async box(url = this.server.url, options?: BoxOptions): Promise<Box> {
    const box = await open(url, options)
    this.#boxes.push(box)
    return box
  }

  async boxes(count: number): Promise<Box[]> {
    return Promise.all(Array.from({ length: count }, () => this.box()))
  }

  /** Starts a network between some clients and the server. */
  async network(): Promise<Proxy> {
    const network = await Proxy.start(this.server.port)
    this.#networks.push(network)
    return network
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The server ends before the boxes, because they would wait for the answers of a stopped one.
    await this.server.kill()
    await Promise.all(this.#networks.map(network => network[Symbol.asyncDispose]()))
    await Promise.all(this.#boxes.map(box => box.close()))
  }
}

/** Returns the URL of a network, for a box behind it. */
export function through({ host, port }: Proxy): string {
  return `redis://${host}:${port}`
}
