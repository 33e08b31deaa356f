import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** A piece of the data of a client, or of the server, on one connection. */
export interface Packet {
  readonly from: 'client' | 'server'
  readonly bytes: Buffer
  /** Its connection, counted from 0. */
  readonly connection: number
}

/** The decision about a packet: its delay in milliseconds, or its loss. */
export type Verdict = number | 'lost'

/** A network in front of a server. A function decides about each packet. */
export class Tap {
  readonly port: number
  /** Decides about each packet. A lost one leaves the connection open. */
  decide: (packet: Packet) => Verdict = () => 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #connections = 0

  private constructor(port: number, target: number) {
    this.port = port
    this.#server = createServer(client => {
      const server = connect(target, '127.0.0.1')
      const connection = this.#connections++
      this.#carry('client', client, server, connection)
      this.#carry('server', server, client, connection)
    })
  }

  /** Starts one in front of a port of this machine. */
  static async start(target: number): Promise<Tap> {
    const tap = new Tap(await freePort(), target)
    await new Promise<void>((resolve, reject) => {
      tap.#server.once('error', reject).listen(tap.port, '127.0.0.1', resolve)
    })
    tap.#server.unref()
    return tap
  }

  /** Returns the URL of a server of this machine with the port of the tap. */
  through(url: string): string {
    return url.replace(/:\d+\//, `:${this.port}/`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #carry(from: 'client' | 'server', source: Socket, target: Socket, connection: number): void {
    const waiting: Buffer[] = []
    let due = 0
    source.setNoDelay()
    source.unref()
    this.#sockets.add(source)
    source.on('error', () => undefined)
    source.on('close', () => {
      this.#sockets.delete(source)
      target.destroy()
    })
    source.on('data', (bytes: Buffer) => {
      const verdict = this.decide({ from, bytes, connection })
      if (verdict === 'lost') return
      if (verdict === 0 && waiting.length === 0) return void target.write(bytes)
      // A stream keeps its order: a packet never overtakes the one before.
      waiting.push(bytes)
      due = Math.max(due, performance.now() + verdict)
      setTimeout(() => void target.write(waiting.shift()!), due - performance.now())
    })
  }
}
