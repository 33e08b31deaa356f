import { connect, createServer, type Server, type Socket } from 'node:net'
import { Frames } from '../../../packages/zookeeper/src/frames.js'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** When the connection is cut: before the server receives the request, or when the server's answer is on its way. */
export type CutMoment = 'before' | 'after'

/** A network in front of a ZooKeeper server that cuts the connection at one request, and forwards everything else. */
export class RequestCutter {
  readonly port: number
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #moment: CutMoment = 'before'
  #left = Infinity

  private constructor(port: number, target: number) {
    this.port = port
    this.#target = target
    this.#server = createServer(socket => this.#accept(socket))
  }

  static async start(target: number): Promise<RequestCutter> {
    const cutter = new RequestCutter(await freePort(), target)
    await new Promise<void>(resolve => cutter.#server.listen(cutter.port, '127.0.0.1', resolve))
    cutter.#server.unref()
    return cutter
  }

  /** Cuts at the request of this number from now on, counted from 1. Pings and renewals of watches don't count. */
  cutAt(number: number, moment: CutMoment): void {
    this.#left = number
    this.#moment = moment
  }

  /** Whether the cut is still to come. */
  get isPending(): boolean {
    return this.#left > 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    const server = connect(this.#target, '127.0.0.1')
    const cut = (): void => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay().unref()
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        cut()
      })
    }
    let isGreeting = true
    let fatal: number | undefined
    const requests = new Frames()
    client.on('data', (chunk: Buffer) => {
      for (const frame of requests.push(chunk)) {
        const isCounted = !isGreeting && frame.readInt32BE(0) > 0
        isGreeting = false
        if (fatal !== undefined) return
        if (isCounted && --this.#left === 0) {
          if (this.#moment === 'before') return cut()
          fatal = frame.readInt32BE(0)
        }
        server.write(framed(frame))
      }
    })
    let isWelcome = true
    const replies = new Frames()
    server.on('data', (chunk: Buffer) => {
      for (const frame of replies.push(chunk)) {
        if (!isWelcome && frame.readInt32BE(0) === fatal) return cut()
        isWelcome = false
        client.write(framed(frame))
      }
    })
  }
}

function framed(frame: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(frame.length)
  return Buffer.concat([length, frame])
}
