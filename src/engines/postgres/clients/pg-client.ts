import { createHash } from 'node:crypto'
import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import { PG_TEXT } from './plain-text.js'
import { Preparation } from './preparation.js'
import { endsConnection, SqlError, type Listening, type Query, type SqlClient } from './sql-client.js'

/** The parts of a `pg` connection that are used; its types may not be installed. */
export interface PgConnection {
  query(statement: PgStatement | string): Promise<{ readonly rows: readonly (readonly unknown[])[] }>
  on(event: 'notification', listener: NotificationListener): unknown
  on(event: 'error' | 'end', lost: () => void): unknown
  off(event: 'notification', listener: NotificationListener): unknown
  off(event: 'error' | 'end', lost: () => void): unknown
}

type NotificationListener = (message: { readonly channel: string; readonly payload?: string }) => void

interface PgStatement {
  readonly text: string
  readonly values: readonly string[]
  readonly name?: string
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (text: string) => string }
}

/** A connection lent by a pool. */
export interface LentConnection extends PgConnection {
  /** Whether the server had already answered on this connection when it was first lent. */
  readonly isKnown?: boolean
  /** Lets the process end while the connection is open. */
  unref?(): void
  /** Returns the connection to the pool, or ends it. */
  release(end?: boolean): void
}

/** The parts of a `pg` pool that are used. */
export interface PgPool {
  connect(lent: (error: Error | undefined, connection: LentConnection | undefined) => void): void
}

/**
 * Names the missing reply in the error for a new connection. PgBouncer accepts one, and lets its first statement wait.
 */
const FIRST_ANSWER = 'answer on a new connection (a pooler in session mode must allow five for each box)'

/** Runs statements over a pool of `pg`. */
export class PgClient implements SqlClient {
  readonly name: string
  readonly #pool: PgPool
  readonly #clock: Clock
  readonly #end: () => Promise<void> | void
  readonly #preparation = new Preparation()
  /** The connections on which the server has answered. */
  readonly #known = new WeakSet<LentConnection>()
  /** Rejects the statements that wait for a connection. */
  readonly #waiting = new Set<() => void>()
  #isClosed = false

  /** @param end ends a pool that was created for the box, or returns the connections that the box has kept. */
  constructor(name: string, pool: PgPool, clock: Clock, end: () => Promise<void> | void = () => undefined) {
    this.name = name
    this.#pool = pool
    this.#clock = clock
    this.#end = end
  }

  readonly query: Query = (text, values) =>
    this.#preparation.around(() =>
      this.#with(connection => {
        const name = this.#preparation.isOn ? { name: nameOf(text) } : {}
        return this.#answered(connection, this.#ask(connection, { text, values, ...name }))
      }),
    )

  async run(text: string): Promise<void> {
    await this.#with(connection => this.#answered(connection, connection.query(text)))
  }

  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#with(connection => this.#transactionOver(connection, work))
  }

  async listen(
    channel: string,
    onMessage: (message: string, channel: string) => void,
    onLost: () => void,
  ): Promise<Listening> {
    const connection = await this.#connect()
    let isListening = false
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      connection.off('notification', notified)
      connection.off('error', broken)
      connection.off('error', ignore)
      connection.off('end', broken)
      connection.release(true)
    }
    const broken = (): void => {
      // Before the box listens, the statement reports the loss.
      if (isListening && !isOver) onLost()
      end()
    }
    const notified: NotificationListener = message => {
      if (!isOver) onMessage(message.payload ?? '', message.channel)
    }
    connection.on('notification', notified)
    connection.on('error', broken)
    connection.on('end', broken)
    try {
      await this.#answered(connection, connection.query(`listen "${channel}"`))
      connection.unref?.()
      isListening = true
    } catch (error) {
      end()
      throw error
    }
    return {
      query: (text, values) => this.#ask(connection, { text, values }),
      run: async text => {
        await connection.query(text)
      },
      stop: () => {
        end()
        return Promise.resolve()
      },
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // A pool that has ended neither serves nor rejects waiting statements.
    for (const refuse of this.#waiting) refuse()
    this.#waiting.clear()
    await this.#end()
  }

  async #with<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    const connection = await this.#connect()
    let isBroken = false
    try {
      return await work(connection)
    } catch (error) {
      isBroken = endsConnection(error)
      throw error
    } finally {
      connection.off('error', ignore)
      connection.release(isBroken)
    }
  }

  async #connect(): Promise<LentConnection> {
    if (this.#isClosed) throw closed()
    let refuse!: () => void
    const connecting = new Promise<LentConnection>((resolve, reject) => {
      refuse = () => reject(closed())
      this.#waiting.add(refuse)
      this.#pool.connect((error, connection) => {
        if (!connection) return reject(error!)
        // The connection comes too late.
        if (!this.#waiting.has(refuse)) return connection.release()
        // An unhandled `error` event would end the process. It can follow at once, in the same packet as the server's
        // greeting. The running statement fails as well.
        connection.on('error', ignore)
        resolve(connection)
      })
    })
    try {
      return await answered(connecting, this.#clock, false, undefined, 'connection of the pool')
    } finally {
      this.#waiting.delete(refuse)
    }
  }

  async #transactionOver<T>(connection: LentConnection, work: (query: Query) => Promise<T>): Promise<T> {
    await this.#answered(connection, connection.query('begin'), false)
    let result: T
    try {
      // The statements are not prepared, because an error of a pooler would end the transaction. A statement that fails
      // before the commit has certainly had no effect.
      result = await work((text, values) =>
        this.#answered(connection, this.#ask(connection, { text, values }), false),
      )
    } catch (error) {
      if (!endsConnection(error)) await this.#answered(connection, connection.query('rollback'), false)
      throw error
    }
    await this.#answered(connection, connection.query('commit'))
    return result
  }

  async #answered<T>(connection: LentConnection, answer: Promise<T>, isSent = true): Promise<T> {
    const isKnown = connection.isKnown === true || this.#known.has(connection)
    const result = await answered(answer, this.#clock, isSent, undefined, isKnown ? 'answer' : FIRST_ANSWER)
    this.#known.add(connection)
    return result
  }

  async #ask(connection: PgConnection, statement: Omit<PgStatement, keyof typeof PG_TEXT>): Promise<unknown> {
    const { rows } = await connection.query({ ...statement, ...PG_TEXT })
    return rows[0]?.[0]
  }
}

function closed(): SqlError {
  return new SqlError('the box was closed', undefined, false, undefined)
}

function ignore(): void {
  // The failure is reported elsewhere.
}

const names = new Map<string, string>()

/** Returns the name of a prepared statement: the same for all boxes that share a connection. */
function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = `signalbox_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
    names.set(text, name)
  }
  return name
}
