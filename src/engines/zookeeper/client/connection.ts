import { randomBytes } from 'node:crypto'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls'
import type { Clock } from '../../../clock.js'
import { OPCODE } from './call.js'
import { DigestMd5, type SaslUser } from './digest-md5.js'
import { NUMBERS, ProtocolError, refusal } from './errors.js'
import { Frames } from './frames.js'
import type { Address } from './hosts.js'
import { JuteReader } from './jute-reader.js'
import { JuteWriter } from './jute-writer.js'

/** Which session a client wants. */
export interface Hello {
  /** The last change it has seen: a server that is behind that refuses it. */
  readonly zxid: bigint
  /** Milliseconds; the server brings it within its own bounds. */
  readonly timeout: number
  /** 0 for a new one. */
  readonly session: bigint
  readonly password: Uint8Array
}

/** How a connection is made. */
export interface ConnectionOptions {
  readonly tls: TlsOptions | undefined
  /** Who the client is, before anything else is asked. */
  readonly sasl: SaslUser | undefined
}

/** What a server answers. */
export interface Welcome {
  /** What the server has made of it; 0 when the session is gone. */
  readonly timeout: number
  readonly session: bigint
  readonly password: Buffer
}

/** Who is told of what comes over a connection. */
export interface ConnectionListener {
  /** A frame; what this throws ends the connection. */
  received(frame: Buffer): void
  /** Once. */
  closed(cause: Error): void
}

/** One connection to one server, welcomed by it. */
export class Connection {
  readonly welcome: Welcome
  readonly #socket: Socket
  readonly #early: Buffer[]
  #listener: ConnectionListener | undefined
  #ended: Error | undefined
  #isCorked = false

  private constructor(socket: Socket, frames: Frames, welcome: Welcome, early: Buffer[]) {
    this.welcome = welcome
    this.#socket = socket
    this.#early = early
    socket.removeAllListeners()
    socket.on('data', (chunk: Buffer) => this.#take(() => frames.push(chunk)))
    socket.on('error', error => this.end(error))
    socket.on('close', () => this.end(new Error('the server has closed the connection')))
  }

  /**
   * Connects, introduces the client, and shows who it is.
   * @param patience how long that may take in all: milliseconds.
   * @throws Error that says why there is no connection; nothing is left of it then
   */
  static open(
    { host, port, name }: Address,
    hello: Hello,
    patience: number,
    { tls, sasl }: ConnectionOptions,
    clock: Clock,
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = tls
        ? connectTls({ servername: isIP(name) === 0 ? name : '', ...tls, host, port })
        : connectTcp(port, host)
      const frames = new Frames()
      const login = sasl && new Login(sasl)
      let welcome: Welcome | undefined
      let stage = 'connecting took too long'
      const fail = (error: Error): void => {
        timer.cancel()
        socket.removeAllListeners()
        socket.on('error', () => undefined)
        socket.destroy()
        reject(new Error(`${host}:${port}: ${error.message}`, { cause: error }))
      }
      const timer = clock.after(
        patience,
        () => fail(new Error(`${stage} (${Math.round(patience)} ms)`)),
        false,
      )
      // Whoever waits keeps the process alive, and not the attempt.
      socket.unref()
      socket.setNoDelay()
      socket.once('error', fail)
      socket.once('close', () => fail(new Error('the server has closed the connection')))
      socket.once(tls ? 'secureConnect' : 'connect', () => {
        stage = 'the server accepts connections, but says nothing'
        socket.write(helloFrame(hello))
      })
      socket.on('data', (chunk: Buffer) => {
        try {
          const early = frames.push(chunk)
          for (let frame = early.shift(); frame; frame = early.shift()) {
            if (!welcome) {
              welcome = readWelcome(frame)
              if (login && welcome.timeout > 0) {
                stage = 'the server says nothing about who the client is'
                socket.write(login.begin())
                continue
              }
            } else {
              const more = login!.next(frame)
              if (more) {
                socket.write(more)
                continue
              }
            }
            timer.cancel()
            resolve(new Connection(socket, frames, welcome, early))
            return
          }
        } catch (error) {
          fail(error as Error)
        }
      })
    })
  }

  /** Tells `listener` of all that comes from now on, and has come since the welcome. */
  attach(listener: ConnectionListener): void {
    this.#listener = listener
    this.#take(() => this.#early)
    if (this.#ended) listener.closed(this.#ended)
  }

  /** Sends a frame; those of one tick travel together. */
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

  /** Whether the connection keeps the process alive. */
  set isAwaited(isAwaited: boolean) {
    if (isAwaited) this.#socket.ref()
    else this.#socket.unref()
  }

  /** Closes it at once. */
  end(cause: Error): void {
    if (this.#ended) return
    this.#ended = cause
    this.#socket.destroy()
    this.#listener?.closed(cause)
  }

  #take(framesOf: () => readonly Buffer[]): void {
    try {
      for (const frame of framesOf()) {
        if (this.#ended) return
        this.#listener!.received(frame)
      }
    } catch (error) {
      this.end(error as Error)
    }
  }
}

/** Shows a server who the client is, in two steps. */
class Login {
  readonly #exchange: DigestMd5
  #hasAnswered = false

  constructor(who: SaslUser) {
    this.#exchange = new DigestMd5(who, randomBytes(16).toString('hex'))
  }

  begin(): Buffer {
    return saslFrame(new Uint8Array(0))
  }

  /**
   * What is to be sent next; undefined when both know who the other is.
   * @throws AuthFailedError when the server does not accept it; ProtocolError
   */
  next(reply: Buffer): Buffer | undefined {
    const reader = new JuteReader(reply)
    reader.int()
    reader.long()
    const number = reader.int()
    if (number !== 0) throw refusal('sasl', '/', NUMBERS.authFailed)
    const token = reader.bytes()
    if (token.length === 0) throw refusal('sasl', '/', NUMBERS.authFailed)
    if (this.#hasAnswered) {
      this.#exchange.verify(token)
      return undefined
    }
    this.#hasAnswered = true
    return saslFrame(this.#exchange.answer(token))
  }
}

function saslFrame(token: Uint8Array): Buffer {
  return new JuteWriter().int(1).int(OPCODE.sasl).bytes(token).frame()
}

function helloFrame({ zxid, timeout, session, password }: Hello): Buffer {
  return new JuteWriter().int(0).long(zxid).int(timeout).long(session).bytes(password).bool(false).frame()
}

/** Old servers leave the last word out, which says whether the server only reads. */
function readWelcome(frame: Buffer): Welcome {
  const reader = new JuteReader(frame)
  const version = reader.int()
  if (version !== 0)
    throw new ProtocolError(`the server speaks version ${version} of the protocol, or another one`)
  return { timeout: reader.int(), session: reader.long(), password: reader.bytes() }
}
