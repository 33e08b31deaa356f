import { createServer, type Server, type Socket } from 'node:net'
import { Frames } from '../src/frames.js'
import { JuteReader } from '../src/jute-reader.js'
import { JuteWriter } from '../src/jute-writer.js'

/** A server that speaks the protocol and replies as the test says. */
export abstract class ScriptedServer {
  readonly #sessionTimeout: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  /** @param sessionTimeout of every session, in milliseconds. */
  constructor(sessionTimeout: number) {
    this.#sessionTimeout = sessionTimeout
    this.#server = createServer(socket => this.#accept(socket))
  }

  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    return `127.0.0.1:${(address as { port: number }).port}`
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  protected abstract answer(socket: Socket, request: JuteReader): void

  /** Returns the reply to a client's hello. */
  protected welcome(): Buffer {
    return new JuteWriter().int(0).int(this.#sessionTimeout).long(7n).bytes(Buffer.alloc(16)).frame()
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket))
    const frames = new Frames()
    let isWelcome = false
    socket.on('data', (chunk: Buffer) => {
      for (const frame of frames.push(chunk)) {
        if (isWelcome) this.answer(socket, new JuteReader(frame))
        else socket.write(this.welcome())
        isWelcome = true
      }
    })
  }
}

/** Writes the stat of a node in a reply. Only `czxid` matters. */
export function writeStat(writer: JuteWriter, czxid = 1n): void {
  writer.long(czxid).long(2n).long(3n).long(4n).int(5).int(6).int(7).long(8n).int(9).int(10).long(11n)
}
