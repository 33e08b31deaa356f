import type { Clock, Timer } from '../../../clock.js'
import type { UnavailableError } from '../../../errors.js'
import { RedisReplyError, type Connect, type Connection, type Patience, type Reply } from './connection.js'
import { sentInVain, unanswered, unreachable, unsent } from './failures.js'
import { InFlight } from './in-flight.js'
import type { ServerCommands } from './redis-link.js'

/** The pause before a further attempt to connect grows from the first to the second of these: milliseconds. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2000

/** What a lasting connection is made of. */
export interface LastingConnectionParts {
  /** For messages: the address without passwords. */
  readonly name: string
  readonly connect: Connect
  /** Makes a new connection ready. A rejection ends the connection. */
  readonly prepare: (connection: Connection) => Promise<void>
  /** Told when a connection is ready. */
  readonly ready?: (isFirst: boolean) => void
  /** Told when a connection was lost, and after each vain try to get the next. */
  readonly failed?: () => void
  readonly message?: (channel: string, text: string) => void
  readonly clock: Clock
  readonly patience: Patience
}

/** Rejects when the server wants a password, still loads its data, or has lost its master. */
export async function seeThatItServes(connection: Connection): Promise<void> {
  await connection.send(['PING'])
}

/**
 * Connections to one server, one after the other: when one is lost the next is made, again and again with growing
 * pauses. No command is ever kept for later or sent twice. What isn't in use keeps no process alive.
 */
export class LastingConnection implements ServerCommands {
  readonly #parts: LastingConnectionParts
  readonly #inFlight: InFlight
  #connection: Connection | undefined
  #opening: Promise<void> | undefined
  /** The attempt to connect that is under way. */
  #attempt: AbortController | undefined
  #retry: Timer | undefined
  #attempts = 0
  #epoch = 0
  #isClosed = false
  /** Why there is no connection. */
  #failure: unknown

  constructor(parts: LastingConnectionParts) {
    this.#parts = parts
    this.#inFlight = new InFlight(parts.clock, parts.patience.answer, {
      busy: () => this.#connection?.keepAlive(true),
      idle: () => this.#connection?.keepAlive(false),
      late: () => this.#tooLate(),
    })
  }

  /** How many connections became ready until now. */
  get epoch(): number {
    return this.#epoch
  }

  get isOver(): boolean {
    return this.#isClosed
  }

  get isReady(): boolean {
    return this.#connection !== undefined
  }

  /**
   * Settles when there is a connection. After the first success a lost one is replaced without being asked.
   * @throws UnavailableError when the one attempt to connect fails
   */
  async connect(): Promise<void> {
    if (this.#connection !== undefined) return
    this.#retry?.cancel()
    await this.#open(true)
  }

  send(...commands: readonly (readonly string[])[]): Promise<Reply> {
    return this.with(connection => {
      for (const command of commands.slice(0, -1)) connection.send(command).catch(() => undefined)
      return connection.send(commands.at(-1)!)
    })
  }

  /** Does something with the connection, with the promises of {@link send}. */
  with<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connection = this.#connection
    if (connection === undefined) return unsent(this.#notConnected())
    return this.#inFlight.follow(work(connection), error => this.#failed(error))
  }

  /** Ends the connection at once. Commands that were not answered reject. */
  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
    this.#attempt?.abort(new Error('the link was closed'))
    const connection = this.#connection
    this.#connection = undefined
    this.#failure = new Error('the link was closed')
    connection?.destroy()
  }

  /** @param isAwaited whether the process stays alive for it */
  #open(isAwaited: boolean): Promise<void> {
    if (this.#isClosed) return Promise.reject(this.#notConnected())
    this.#opening ??= this.#openOne(isAwaited).finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #openOne(isAwaited: boolean): Promise<void> {
    const { clock, patience } = this.#parts
    const attempt = new AbortController()
    const { signal } = attempt
    this.#attempt = attempt
    const late = (): void => attempt.abort(new Error(`not ready within ${patience.connect} ms`))
    const timer = clock.after(patience.connect, late, isAwaited)
    const abandoned = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
    try {
      await Promise.race([abandoned, this.#make(attempt)])
    } catch (error) {
      attempt.abort(error)
      this.#failure = error
      if (this.#epoch > 0) this.#reconnect()
      throw this.#notConnected()
    } finally {
      timer.cancel()
      this.#attempt = undefined
    }
  }

  async #make(attempt: AbortController): Promise<void> {
    const { connect, message, patience, prepare } = this.#parts
    const { signal } = attempt
    const made: { connection?: Connection } = {}
    const listener = {
      lost: (cause: unknown): void => {
        attempt.abort(cause)
        if (made.connection !== undefined) this.#lost(made.connection, cause)
      },
      message: (channel: string, text: string): void => message?.(channel, text),
    }
    made.connection = await connect(listener, { timeLimit: patience.connect, signal })
    await prepare(made.connection)
    signal.throwIfAborted()
    this.#begin(made.connection)
  }

  #begin(connection: Connection): void {
    const isFirst = this.#epoch++ === 0
    this.#attempts = 0
    this.#connection = connection
    connection.keepAlive(this.#inFlight.size > 0)
    this.#parts.ready?.(isFirst)
  }

  #lost(connection: Connection, cause: unknown): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#failure = cause
    this.#reconnect()
  }

  #reconnect(): void {
    if (this.#isClosed) return
    this.#parts.failed?.()
    const pause = Math.min(SHORTEST_PAUSE * 2 ** this.#attempts++, LONGEST_PAUSE)
    // Many clients lose their connections at the same moment; jitter keeps them from coming back at the same moment.
    const delay = pause * (0.5 + Math.random() / 2)
    const again = (): void => {
      this.#open(false).catch(() => undefined)
    }
    this.#retry = this.#parts.clock.after(delay, again, false)
  }

  #tooLate(): unknown {
    const { name, patience } = this.#parts
    const error = unanswered(name, patience.answer)
    // Whatever is the matter with this connection, a new one finds out.
    this.#drop(error)
    return error
  }

  #failed(error: unknown): unknown {
    // The server has lost its role; the connection that comes next may find the one that has it now.
    if (error instanceof RedisReplyError && error.code === 'READONLY') this.#drop(error)
    return sentInVain(this.#parts.name, error)
  }

  /** Gives the connection up, as if it had been lost, so that a new one is made. */
  #drop(cause: unknown): void {
    const connection = this.#connection
    if (connection === undefined) return
    this.#lost(connection, cause)
    connection.destroy()
  }

  #notConnected(): UnavailableError {
    return unreachable(this.#parts.name, this.#failure)
  }
}
