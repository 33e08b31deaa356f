import type { Clock } from '../../../base/clock.js'
import { Reconnector } from '../../../engine/kit/reconnector.js'
import type { UnavailableError } from '../../../base/errors.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'
import type { Connect, Connection, Timeouts, Reply } from './connection.js'
import { isDemoted, sendFailure, unanswered, unreachable, unsent } from './failures.js'

export interface LastingConnectionParts {
  /** For errors and logs: the address without passwords. */
  readonly name: string
  readonly connect: Connect
  /** Makes a new connection ready. A rejection ends the connection. Default: a `PING`. */
  readonly prepare?: (connection: Connection) => Promise<void>
  /** Called when a connection is ready. */
  readonly ready?: (isFirst: boolean) => void
  /** Called when a connection was lost, and after each failed attempt to reconnect. */
  readonly failed?: () => void
  /** Called when the server has reported that it is no longer the master. */
  readonly demoted?: (() => void) | undefined
  readonly message?: (channel: string, text: string) => void
  readonly clock: Clock
  readonly timeouts: Timeouts
}

/** Rejects when the server requires a password, still loads its data, or has lost its master. */
async function assertReady(connection: Connection): Promise<void> {
  await connection.send(['PING'])
}

/**
 * A connection to one server, which is replaced when it is lost. Commands are never kept for later or sent twice.
 * Without pending commands, it does not keep the process alive.
 */
export class ReconnectingConnection {
  readonly #parts: LastingConnectionParts
  /** Number of commands that wait for their answers. */
  #waiting = 0
  readonly #connections: Reconnector<Connection>
  /** The attempt to connect that is under way. */
  #attempt: AbortController | undefined
  #epoch = 0
  /** Why there is no connection. */
  #failure: unknown
  #reconnecting: Promise<void> | undefined

  constructor(parts: LastingConnectionParts) {
    this.#parts = parts
    this.#connections = new Reconnector(() => this.#connectOnce(), parts.clock)
  }

  /** Number of connections that became ready; 0 before the first one. */
  get epoch(): number {
    return this.#epoch
  }

  /**
   * Settles when the first attempts to connect after a loss have ended; undefined if there is nothing to wait for. The
   * server may be reachable all the time: connections also break while this process is frozen.
   */
  get reconnecting(): Promise<void> | undefined {
    return this.#reconnecting
  }

  get isReady(): boolean {
    return this.#connections.now !== undefined
  }

  /**
   * Connects. After the first success, lost connections are replaced automatically.
   * @throws UnavailableError when the attempt to connect fails
   */
  async connect(): Promise<void> {
    if (this.#connections.isClosed) return unsent(this.#notConnected())
    try {
      await this.#connections.get()
    } catch {
      return unsent(this.#notConnected())
    }
  }

  /**
   * Sends commands one right after the other over the same connection, and resolves with the reply to the last one.
   * Rejects as {@link RedisLink.command} says.
   */
  send(...commands: readonly (readonly string[])[]): Promise<Reply> {
    return this.with(connection => {
      for (const command of commands.slice(0, -1)) connection.send(command).catch(() => undefined)
      return connection.send(commands.at(-1)!)
    })
  }

  /** Calls `work` with the connection. Settles as {@link send} does. */
  with<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connection = this.#connections.now
    if (connection === undefined) return unsent(this.#notConnected())
    return this.#follow(work(connection))
  }

  /** Drops the connection, as if it had been lost, so that a new one is made. */
  drop(cause: unknown): void {
    const connection = this.#connections.now
    if (connection === undefined) return
    this.#lost(connection, cause)
    connection.destroy()
  }

  /** Ends the connection at once. Commands without a reply reject. */
  close(): void {
    this.#failure = new Error('the link was closed')
    this.#attempt?.abort(this.#failure)
    void this.#connections.close().then(connection => connection?.destroy())
  }

  /** Makes a connection and prepares it, within the time limit. */
  async #connectOnce(): Promise<Connection> {
    const { clock, failed, timeouts } = this.#parts
    const attempt = new AbortController()
    const { signal } = attempt
    this.#attempt = attempt
    const late = (): void => attempt.abort(new Error(`not ready within ${timeouts.connect} ms`))
    const timer = clock.after(timeouts.connect, late, true)
    const abandoned = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
    try {
      return await Promise.race([abandoned, this.#make(attempt)])
    } catch (error) {
      attempt.abort(error)
      this.#failure = error
      if (this.#epoch > 0 && !this.#connections.isClosed) failed?.()
      throw error
    } finally {
      timer.cancel()
      this.#attempt = undefined
    }
  }

  async #make(attempt: AbortController): Promise<Connection> {
    const { connect, message, timeouts, prepare = assertReady, ready } = this.#parts
    const { signal } = attempt
    const made: { connection?: Connection } = {}
    const listener = {
      lost: (cause: unknown): void => {
        attempt.abort(cause)
        if (made.connection === undefined || this.#connections.now !== made.connection) return
        this.#lost(made.connection, cause)
        this.#reconnect()
      },
      message: (channel: string, text: string): void => message?.(channel, text),
    }
    made.connection = await connect(listener, { timeLimit: timeouts.connect, signal })
    await prepare(made.connection)
    // mutant: lost-while-prepared
    signal.throwIfAborted()
    made.connection.keepAlive(this.#waiting > 0)
    this.#epoch++
    ready?.(this.#epoch === 1)
    return made.connection
  }

  /** Settles as the answer does, or rejects when it is late. */
  #follow<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const { clock, name, timeouts } = this.#parts
    return new Promise((resolve, reject) => {
      let isSettled = false
      const settle = (): boolean => {
        if (isSettled) return false
        isSettled = true
        timer.cancel()
        if (--this.#waiting === 0) this.#connections.now?.keepAlive(false)
        return true
      }
      const expire = (): void => {
        if (!settle()) return
        const error = unanswered(name, timeouts.answer)
        // A new connection shows whether the server can be reached.
        this.drop(error)
        reject(error)
      }
      // After the process was frozen, the timer is due before the answer that has arrived is read. So the answer is
      // read first.
      const timer = clock.after(timeouts.answer, () => runtimeTimers.setImmediate(expire), false)
      if (this.#waiting++ === 0) this.#connections.now?.keepAlive(true)
      answer.then(
        value => {
          if (settle()) resolve(value)
        },
        (error: unknown) => {
          if (settle()) reject(this.#failed(error))
        },
      )
    })
  }

  /** Connects again after a loss. Tries twice, because this process may be frozen during one attempt. */
  #reconnect(): void {
    const attempt = this.connect()
      .catch(() => this.connect())
      .catch(() => undefined)
    this.#reconnecting = attempt
    const over = (): void => {
      // The new connection may have been lost by now.
      if (this.#reconnecting === attempt) this.#reconnecting = undefined
    }
    // Later calls wait, too, until those that have waited are sent, so that all keep their order.
    void attempt.then(() => runtimeTimers.setImmediate(over))
  }

  #failed(error: unknown): unknown {
    // The next connection may lead to the new master.
    if (isDemoted(error)) {
      // mutant: replica-kept
      this.drop(error)
      this.#parts.demoted?.()
    }
    return sendFailure(this.#parts.name, error)
  }

  #lost(connection: Connection, cause: unknown): void {
    if (this.#connections.now !== connection) return
    this.#failure = cause
    this.#parts.failed?.()
    this.#connections.lost(connection)
  }

  #notConnected(): UnavailableError {
    return unreachable(this.#parts.name, this.#failure)
  }
}
