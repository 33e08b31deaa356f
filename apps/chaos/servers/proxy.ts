import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.js'

/**
 * The treatment of bytes that arrive: `pass` forwards them after {@link Proxy.delay}, and `hold` keeps them until they
 * may pass. `lose` drops them and all that follow on the same connection, because a stream has no gaps.
 */
export type Fate = 'pass' | 'hold' | 'lose'

/** Options of a proxy. */
interface Ends {
  /** The host of the server; default: this machine. */
  readonly targetHost?: string
  /** The port of this machine that the proxy listens on; default: a free one. */
  readonly port?: number
}

/** A proxy between clients and a server. It simulates a network that is slow, loses one direction, or breaks. */
export class Proxy {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly targetHost: string
  /** The port of the server for new connections. If undefined, they are refused. */
  target: number | undefined
  /** Delay of each direction, in milliseconds. */
  delay = 0
  /** Maximum additional delay of each request, chosen at random, in milliseconds. */
  requestJitter = 0
  /** The same for replies. */
  replyJitter = 0
  /** Connections on which a client has sent text that matches this lose all later replies, but stay open. */
  mute: RegExp | undefined
  readonly #server: Server
  readonly #pipes = new Set<Pipe>()
  #requests: Fate = 'pass'
  #replies: Fate = 'pass'

  private constructor(port: number, target: number, targetHost: string) {
    this.port = port
    this.target = target
    this.targetHost = targetHost
    this.#server = createServer(socket => this.#accept(socket))
  }

  /** Starts a proxy in front of a port. */
  static async start(target: number, { targetHost = '127.0.0.1', port }: Ends = {}): Promise<Proxy> {
    const proxy = new Proxy(port ?? (await freePort()), target, targetHost)
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject).listen(proxy.port, proxy.host, resolve)
    })
    // Open connections must not keep a test process alive.
    proxy.#server.unref()
    return proxy
  }

  /** The treatment of bytes from clients. */
  set requests(fate: Fate) {
    this.#requests = fate
    for (const pipe of this.#pipes) pipe.release()
  }

  get requests(): Fate {
    return this.#requests
  }

  /** The treatment of bytes from the server. */
  set replies(fate: Fate) {
    this.#replies = fate
    for (const pipe of this.#pipes) pipe.release()
  }

  get replies(): Fate {
    return this.#replies
  }

  /** Number of bytes from the server that are held or were lost, on the connections that are open. */
  get withheldReplies(): number {
    return [...this.#pipes].reduce((sum, pipe) => sum + pipe.withheldReplies, 0)
  }

  /** Number of bytes from clients that are held or were lost, on the connections that are open. */
  get withheldRequests(): number {
    return [...this.#pipes].reduce((sum, pipe) => sum + pipe.withheldRequests, 0)
  }

  /** Drops all further bytes in one direction on the connections that are open now. The connections stay open. */
  swallow(way: 'requests' | 'replies'): void {
    for (const pipe of this.#pipes) pipe.swallow(way)
  }

  /**
   * Breaks each connection that is open now when its client sends something, and keeps those bytes.
   * @returns a function that delivers them, and resolves when the server has answered or has closed its end.
   */
  strand(): () => Promise<void> {
    const stranded = [...this.#pipes].map(pipe => pipe.strand())
    return async () => {
      await Promise.all(stranded.map(deliver => deliver()))
    }
  }

  /** Closes all connections and drops bytes under way. Clients can connect again. */
  cut(): void {
    for (const pipe of this.#pipes) pipe.cut()
  }

  /**
   * Resets all connections of clients, as a machine does that does not know a connection. Clients can connect again.
   */
  reset(): void {
    for (const pipe of this.#pipes) pipe.reset()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.target === undefined) return void client.resetAndDestroy()
    const pipe = new Pipe(this, client, connect(this.target, this.targetHost), () => this.#pipes.delete(pipe))
    this.#pipes.add(pipe)
  }
}

/** One connection through the proxy. */
class Pipe {
  readonly #client: Socket
  readonly #server: Socket
  readonly #requests: Direction
  readonly #replies: Direction
  /** The first bytes from the client, as text. */
  #said = ''
  /** Whether the connection to the server stays open when the client's end closes. */
  #isStranded = false

  constructor(proxy: Proxy, client: Socket, server: Socket, ended: () => void) {
    this.#client = client
    this.#server = server
    this.#requests = new Direction(client, server, () => proxy.requests, {
      delay: () => proxy.delay + Math.random() * proxy.requestJitter,
    })
    this.#replies = new Direction(server, client, () => proxy.replies, {
      delay: () => proxy.delay + Math.random() * proxy.replyJitter,
      isMuted: () => proxy.mute !== undefined && proxy.mute.test(this.#said),
    })
    client.on('data', (bytes: Buffer) => {
      if (this.#said.length < MAX_OUTPUT) this.#said += bytes.toString('latin1')
    })
    for (const socket of [client, server]) {
      socket.setNoDelay()
      socket.unref()
      socket.on('error', () => undefined)
      socket.on('close', () => {
        ended()
        if (!this.#isStranded) this.cut()
      })
    }
  }

  get withheldReplies(): number {
    return this.#replies.withheld
  }

  get withheldRequests(): number {
    return this.#requests.withheld
  }

  /** Drops all further bytes in one direction. */
  swallow(way: 'requests' | 'replies'): void {
    if (way === 'requests') this.#requests.swallow()
    else this.#replies.swallow()
  }

  /** The same as {@link Proxy.strand}, for this connection. */
  strand(): () => Promise<void> {
    const server = this.#server
    this.#isStranded = true
    const sent = this.#requests.strand(() => setTimeout(() => this.#client.destroy(), STRANDING))
    return async () => {
      const answered = new Promise<void>(resolve =>
        server.once('data', () => resolve()).once('close', resolve),
      )
      const isDelivered = sent.length > 0 && !server.destroyed
      for (const bytes of sent) server.write(bytes)
      if (isDelivered) await answered
      this.cut()
    }
  }

  /** Forwards held bytes that may pass now. */
  release(): void {
    this.#requests.release()
    this.#replies.release()
  }

  cut(): void {
    this.#client.destroy()
    this.#server.destroy()
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.#server.destroy()
  }
}

/** Length of the text from a client that is searched for {@link Proxy.mute}, in characters. */
const MAX_OUTPUT = 100_000

/** Time after the first bytes of a stranded request in which the rest must arrive, in milliseconds. */
const STRANDING = 10

/** The disturbances of one direction besides its fate. */
interface Disturbance {
  /** Returns the delay of the next packet, in milliseconds. */
  delay(): number
  isMuted?(): boolean
}

/** One direction of a connection. */
class Direction {
  /** Number of bytes that are held or were lost. */
  withheld = 0
  readonly #to: Socket
  readonly #fate: () => Fate
  readonly #disturbance: Disturbance
  readonly #held: Buffer[] = []
  readonly #delayed: Buffer[] = []
  /** Time at which the last of the delayed packets may pass. */
  #due = 0
  #isBroken = false
  #stranded: { readonly bytes: Buffer[]; readonly begun: () => void } | undefined

  constructor(from: Socket, to: Socket, fate: () => Fate, disturbance: Disturbance) {
    this.#to = to
    this.#fate = fate
    this.#disturbance = disturbance
    from.on('data', (bytes: Buffer) => {
      const delay = disturbance.delay()
      if (delay === 0 && this.#delayed.length === 0) return this.#pass(bytes)
      // A stream keeps its order even if the delay becomes shorter: new bytes follow those that are delayed.
      this.#delayed.push(bytes)
      this.#due = Math.max(this.#due, performance.now() + delay)
      setTimeout(() => this.#pass(this.#delayed.shift()!), this.#due - performance.now())
    })
  }

  swallow(): void {
    this.#isBroken = true
  }

  /**
   * Keeps all further bytes.
   * @param begun is called with the first of them.
   * @returns the bytes that were kept, which grow over time.
   */
  strand(begun: () => void): readonly Buffer[] {
    this.#stranded = { bytes: [], begun }
    return this.#stranded.bytes
  }

  release(): void {
    if (this.#fate() === 'hold') return
    for (const bytes of this.#held.splice(0)) {
      this.withheld -= bytes.length
      this.#pass(bytes)
    }
  }

  #pass(bytes: Buffer): void {
    if (this.#stranded) {
      if (this.#stranded.bytes.push(bytes) === 1) this.#stranded.begun()
      return
    }
    if (this.#disturbance.isMuted?.()) this.swallow()
    const fate = this.#isBroken ? 'lose' : this.#held.length > 0 ? 'hold' : this.#fate()
    if (fate === 'pass') return void this.#to.write(bytes)
    this.withheld += bytes.length
    if (fate === 'hold') this.#held.push(bytes)
    else this.#isBroken = true
  }
}
