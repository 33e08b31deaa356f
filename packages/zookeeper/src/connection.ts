import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls'
import { after, now } from './clock.js'
import type { SaslUser } from './digest-md5.js'
import { Frames } from './frames.js'
import { Handshake, type Hello, type Welcome } from './handshake.js'
import type { Address } from './hosts.js'

/** Options of a connection. */
export interface ConnectionOptions {
  readonly tls: TlsOptions | undefined
  readonly sasl: SaslUser | undefined
}

/** Receives the events of a connection. */
export interface ConnectionListener {
  /** Called with each frame. An exception ends the connection. */
  onFrame(frame: Buffer): void
  /** Called once, when the connection has ended. */
  onClose(cause: Error): void
}

/** A connection to a server that has welcomed the client. It lets the process end. */
export class Connection {
  readonly welcome: Welcome
  /** Clock time at which the client asked for the connection. */
  readonly askedAt: number
  readonly #socket: Socket
  /** Frames that arrived before there was a listener. */
  readonly #early: Buffer[]
  #listener: ConnectionListener | undefined
  #ended: Error | undefined
  #isCorked = false

  private constructor(socket: Socket, frames: Frames, welcome: Welcome, early: Buffer[], askedAt: number) {
    this.welcome = welcome
    this.askedAt = askedAt
    this.#socket = socket
    this.#early = early
    socket.removeAllListeners()
    socket.on('data', (chunk: Buffer) => this.#take(() => frames.push(chunk)))
    socket.on('error', error => this.end(error))
    socket.on('close', () => this.end(new Error('the server closed the connection')))
  }

  /**
   * Connects and completes the handshake.
   * @param timeout maximum time for all of it, in milliseconds.
   * @throws Error that names the failure, with its cause
   */
  static open(
    { host, port, name }: Address,
    hello: Hello,
    timeout: number,
    { tls, sasl }: ConnectionOptions,
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const askedAt = now()
      const handshake = new Handshake(hello, sasl)
      const frames = new Frames()
      const socket = tls
        ? connectTls({ servername: isIP(name) === 0 ? name : '', ...tls, host, port })
        : connectTcp(port, host)
      const fail = (error: Error): void => {
        timer.cancel()
        socket.removeAllListeners()
        socket.on('error', () => undefined)
        socket.destroy()
        reject(new Error(`${host}:${port}: ${error.message}`, { cause: error }))
      }
      const late = (): void => fail(new Error(`${handshake.stage} (${Math.round(timeout)} ms)`))
      const timer = after(timeout, late, false)
      socket.unref()
      socket.setNoDelay()
      socket.once('error', fail)
      socket.once('close', () => fail(new Error('the server closed the connection')))
      socket.once(tls ? 'secureConnect' : 'connect', () => socket.write(handshake.begin()))
      socket.on('data', (chunk: Buffer) => {
        try {
          const arrived = frames.push(chunk)
          while (arrived.length > 0) {
            const answer = handshake.next(arrived.shift()!)
            if (answer) {
              socket.write(answer)
              continue
            }
            timer.cancel()
            resolve(new Connection(socket, frames, handshake.welcome!, arrived, askedAt))
            return
          }
        } catch (error) {
          fail(error as Error)
        }
      })
    })
  }

  /** Passes events to `listener`, including frames that have arrived since the welcome. */
  attach(listener: ConnectionListener): void {
    this.#listener = listener
    this.#take(() => this.#early)
    if (this.#ended) listener.onClose(this.#ended)
  }

  /** Sends a frame. The frames of one tick are sent together. */
  send(frame: Buffer): void {
    if (!this.#isCorked) {
      this.#isCorked = true
      this.#socket.cork()
      queueMicrotask(() => {
        this.#isCorked = false
        this.#socket.uncork()
      })
    }
    this.#socket.write(frame)
  }

  /** Closes the connection at once. */
  end(cause: Error): void {
    if (this.#ended) return
    this.#ended = cause
    this.#socket.destroy()
    this.#listener?.onClose(cause)
  }

  #take(framesOf: () => readonly Buffer[]): void {
    try {
      for (const frame of framesOf()) {
        if (this.#ended) return
        this.#listener!.onFrame(frame)
      }
    } catch (error) {
      this.end(error as Error)
    }
  }
}
