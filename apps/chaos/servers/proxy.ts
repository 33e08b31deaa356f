import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.js'

/**
 * What happens to what passes through: it continues after {@link Proxy.delay}; it is held until it may pass again; or
 * it is lost, and with it all that comes after on the same connection, because a stream has no holes.
 */
export type Fate = 'pass' | 'hold' | 'lose'

/** Where a proxy leads to and listens, unless the options say otherwise. */
interface Ends {
  /** The host that it leads to; default: this machine. */
  readonly targetHost?: string
  /** The port of this machine that it listens on; default: one that is free. */
  readonly port?: number
}

/** A network between clients and a server, which can be slow, lose one direction, or break. */
export class Proxy {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly targetHost: string
  /** Where new connections lead to; undefined: they are refused. */
  target: number | undefined
  /** How long each way takes, in milliseconds. */
  delay = 0
  /** Up to this comes on top for each request, at random, in milliseconds. */
  requestJitter = 0
  /** The same for replies. */
  replyJitter = 0
  /** Connections on which a client has said this lose all replies from then on, and stay open. */
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

  /** Starts one in front of another port. */
  static async start(target: number, { targetHost = '127.0.0.1', port }: Ends = {}): Promise<Proxy> {
    const proxy = new Proxy(port ?? (await freePort()), target, targetHost)
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject).listen(proxy.port, proxy.host, resolve)
    })
    // Clients that are left open keep no test process alive.
    proxy.#server.unref()
    return proxy
  }

  /** What happens to what clients send. */
  set requests(fate: Fate) {
    this.#requests = fate
    for (const pipe of this.#pipes) pipe.release()
  }

  get requests(): Fate {
    return this.#requests
  }

  /** What happens to what the server sends. */
  set replies(fate: Fate) {
    this.#replies = fate
    for (const pipe of this.#pipes) pipe.release()
  }

  get replies(): Fate {
    return this.#replies
  }

  /** How many bytes of the server are held or were lost on the connections that are open. */
  get withheldReplies(): number {
    return [...this.#pipes].reduce((sum, pipe) => sum + pipe.withheldReplies, 0)
  }

  /** How many bytes of clients are held or were lost on the connections that are open. */
  get withheldRequests(): number {
    return [...this.#pipes].reduce((sum, pipe) => sum + pipe.withheldRequests, 0)
  }

  /** The connections that are open now lose all that is sent this way, and stay open. */
  swallow(way: 'requests' | 'replies'): void {
    for (const pipe of this.#pipes) pipe.swallow(way)
  }

  /**
   * The connections that are open now break for their clients when these send something, which stays under way.
   * @returns delivers that, and resolves when the server has answered or has closed its end.
   */
  strand(): () => Promise<void> {
    const stranded = [...this.#pipes].map(pipe => pipe.strand())
    return async () => {
      await Promise.all(stranded.map(deliver => deliver()))
    }
  }

  /** Breaks all connections, and what was under way is lost; new ones can be made. */
  cut(): void {
    for (const pipe of this.#pipes) pipe.cut()
  }

  /** Resets all connections of clients, as a machine does that does not know them; new ones can be made. */
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
  /** What the client said first. */
  #said = ''
  /** Whether the end of the server stays open when that of the client is closed. */
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

  /** From now on what is sent this way is lost. */
  swallow(way: 'requests' | 'replies'): void {
    if (way === 'requests') this.#requests.swallow()
    else this.#replies.swallow()
  }

  /** As {@link Proxy.strand}, for this connection. */
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

  /** Lets go what is held and may pass now. */
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

/** So much of what a client says is searched for {@link Proxy.mute}: characters. */
const MAX_OUTPUT = 100_000

/** The rest of a request that is to be stranded comes within this time of its beginning, in milliseconds. */
const STRANDING = 10

/** What disturbs one direction besides its fate. */
interface Disturbance {
  /** Until the next packet may pass, in milliseconds. */
  delay(): number
  isMuted?(): boolean
}

/** One direction of a connection. */
class Direction {
  /** How many bytes were kept back. */
  withheld = 0
  readonly #to: Socket
  readonly #fate: () => Fate
  readonly #disturbance: Disturbance
  readonly #held: Buffer[] = []
  readonly #delayed: Buffer[] = []
  /** When the last of those may pass. */
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
      // A stream keeps its order, also when the delay becomes shorter: what comes is behind what is on the way.
      this.#delayed.push(bytes)
      this.#due = Math.max(this.#due, performance.now() + delay)
      setTimeout(() => this.#pass(this.#delayed.shift()!), this.#due - performance.now())
    })
  }

  swallow(): void {
    this.#isBroken = true
  }

  /** Keeps back what comes from now on. @param begun is called with the first of it. @returns what was kept back. */
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
