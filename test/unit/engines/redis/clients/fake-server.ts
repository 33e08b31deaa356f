import type {
  Attempt,
  Connect,
  Connection,
  ConnectionListener,
} from '../../../../../src/engines/redis/clients/connection.js'
import type { Reply } from '../../../../../src/engines/redis/clients/connection.js'

export class FakeConnection implements Connection {
  readonly listener: ConnectionListener
  readonly sent: string[] = []
  readonly channels = new Set<string>()
  isDestroyed = false
  keepsAlive = true
  readonly #server: FakeServer
  readonly #waiting: ((error: Error) => void)[] = []

  constructor(server: FakeServer, listener: ConnectionListener) {
    this.#server = server
    this.listener = listener
  }

  send(args: readonly string[]): Promise<Reply> {
    this.sent.push(args.join(' '))
    return new Promise((resolve, reject) => {
      this.#waiting.push(reject)
      this.#server.answer(args, resolve, reject)
    })
  }

  async subscribe(channel: string, sharded: boolean): Promise<void> {
    await this.send([sharded ? 'SSUBSCRIBE' : 'SUBSCRIBE', channel])
    this.channels.add(channel)
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.send(['UNSUBSCRIBE', channel])
    this.channels.delete(channel)
  }

  keepAlive(wanted: boolean): void {
    this.keepsAlive = wanted
  }

  destroy(): void {
    if (this.isDestroyed) return
    this.isDestroyed = true
    this.#rejectAll()
  }

  /** Breaks the connection. */
  break(): void {
    this.isDestroyed = true
    this.listener.lost(new Error('broken'))
    this.#rejectAll()
  }

  #rejectAll(): void {
    for (const reject of this.#waiting) reject(new Error('connection gone'))
  }
}

/** A scripted server without a network. */
export class FakeServer {
  /** All connections so far. */
  readonly connections: FakeConnection[] = []
  /** Number of attempts of a client to connect. */
  tries = 0
  /** Treatment of new connections. */
  door: 'open' | 'closed' | 'frozen' = 'open'
  /** Answers a command. */
  answer: (
    args: readonly string[],
    resolve: (reply: Reply) => void,
    reject: (error: unknown) => void,
  ) => void = (args, resolve) => resolve(args.join(' '))
  /** Number of attempts that clients gave up while connecting. */
  abandoned = 0

  readonly connect: Connect = (listener: ConnectionListener, { signal }: Attempt) => {
    this.tries++
    const made = this.door === 'open' ? new FakeConnection(this, listener) : undefined
    if (made !== undefined) this.connections.push(made)
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        made?.destroy()
        this.abandoned++
        reject(new Error('abandoned'))
      })
      if (made !== undefined) resolve(made)
      if (this.door === 'closed') reject(new Error('refused'))
    })
  }

  /** The newest connection. */
  get last(): FakeConnection {
    return this.connections.at(-1)!
  }
}

/** Lets everything run that is ready. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve))
}
