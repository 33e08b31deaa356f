import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** The address of a server: a port of 127.0.0.1, with or without TLS. */
export interface RedisAddress {
  readonly port: number
  readonly tls: boolean
}

/** An answer of Redis in RESP2. An error that is an element of a list is an Error. */
export type RedisAnswer = string | number | null | Error | RedisAnswer[]

interface Call {
  readonly resolve: (answer: RedisAnswer) => void
  readonly reject: (error: Error) => void
}

/** A connection of the tests' own, so that their results do not depend on the client packages that they test. */
export class RedisConnection {
  readonly #socket: Socket
  readonly #calls: Call[] = []
  #received = Buffer.alloc(0)

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#settle()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      for (const call of this.#calls.splice(0)) call.reject(new Error('The connection was closed'))
    })
  }

  static async open({ port, tls }: RedisAddress): Promise<RedisConnection> {
    const host = '127.0.0.1'
    const socket = tls ? connectTls({ host, port, rejectUnauthorized: false }) : connectPlain({ host, port })
    await new Promise((resolve, reject) => {
      socket.once(tls ? 'secureConnect' : 'connect', resolve)
      socket.once('error', reject)
    })
    return new RedisConnection(socket)
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Sends a command. Rejects with the server's error, or when the connection breaks. */
  command(...args: readonly (string | number)[]): Promise<RedisAnswer> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) {
        reject(new Error('The connection was closed'))
        return
      }
      this.#calls.push({ resolve, reject })
      const parts = args.map(arg => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`)
      this.#socket.write(`*${args.length}\r\n${parts.join('')}`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #settle(): void {
    while (true) {
      const parsed = parse(this.#received, 0)
      if (parsed === undefined) return
      this.#received = this.#received.subarray(parsed.end)
      const call = this.#calls.shift()
      if (parsed.answer instanceof Error) call?.reject(parsed.answer)
      else call?.resolve(parsed.answer)
    }
  }
}

/** Reads one answer that begins at `start`; undefined while it is incomplete. */
function parse(bytes: Buffer, start: number): { answer: RedisAnswer; end: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', start)
  if (lineEnd === -1) return undefined
  const line = bytes.toString('utf8', start + 1, lineEnd)
  const end = lineEnd + 2
  switch (String.fromCharCode(bytes[start]!)) {
    case '+':
      return { answer: line, end }
    case '-':
      return { answer: new Error(line), end }
    case ':':
      return { answer: Number(line), end }
    case '$': {
      const length = Number(line)
      if (length === -1) return { answer: null, end }
      if (bytes.length < end + length + 2) return undefined
      return { answer: bytes.toString('utf8', end, end + length), end: end + length + 2 }
    }
    default:
      return Number(line) === -1 ? { answer: null, end } : parseList(bytes, end, Number(line))
  }
}

function parseList(bytes: Buffer, start: number, length: number) {
  const answer: RedisAnswer[] = []
  let end = start
  while (answer.length < length) {
    const element = parse(bytes, end)
    if (element === undefined) return undefined
    answer.push(element.answer)
    end = element.end
  }
  return { answer, end }
}
