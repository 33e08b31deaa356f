import { createHash } from 'node:crypto'
import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import { Preparation } from './preparation.js'
import { endsConnection, SqlError, type Listening, type Query, type SqlClient } from './sql-client.js'

/**
 * Options of a statement that return each column as the text that the server sent. The caller may have changed how a
 * client parses booleans, JSON or text, and the engine's statements all return text.
 */
export const PG_TEXT = {
  rowMode: 'array',
  types: { getTypeParser: () => (text: string) => text },
} as const

/** The parts of a `pg` connection that are used; its types may not be installed. */
export interface PgConnection {
  /** Several statements in one text, without values, have a result each. */
  query(statement: PgStatement): Promise<PgResult | readonly PgResult[]>
  on(event: 'notification', listener: NotificationListener): unknown
  on(event: 'error' | 'end', lost: () => void): unknown
  off(event: 'notification', listener: NotificationListener): unknown
  off(event: 'error' | 'end', lost: () => void): unknown
}

type NotificationListener = (message: { readonly channel: string; readonly payload?: string }) => void

interface PgResult {
  readonly rows: readonly (readonly unknown[])[]
}

interface PgStatement {
  readonly text: string
  readonly values?: readonly string[]
  readonly name?: string
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (text: string) => string }
}

/** A connection lent by a pool. */
export interface LentConnection extends PgConnection {
  /** Whether it is the caller's only connection, which is lent to several users at once and stays open. */
  readonly isCallers?: boolean
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
    this.#preparation.around(prepares => {
      const name = prepares ? { name: nameOf(text) } : {}
      return this.#with(connection => this.#answered(connection, ask(connection, { text, values, ...name })))
    })

  run(text: string): Promise<unknown> {
    return this.#with(connection => this.#answered(connection, ask(connection, { text }), false))
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
      await this.#answered(connection, ask(connection, { text: `listen "${channel}"` }))
      connection.unref?.()
      isListening = true
    } catch (error) {
      end()
      throw error
    }
    return {
      query: (text, values) => ask(connection, { text, values }),
      run: text => ask(connection, { text }),
      stop: async () => {
        const staysOpen = !isOver && connection.isCallers
        end()
        if (staysOpen) await this.run(`unlisten "${channel}"`)
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
        resolve(connection)
      })
    })
    try {
      return await answered(connecting, this.#clock, false, undefined, 'connection of the pool')
    } finally {
      this.#waiting.delete(refuse)
    }
  }

  async #answered<T>(connection: LentConnection, answer: Promise<T>, isSent = true): Promise<T> {
    const isKnown = connection.isCallers === true || this.#known.has(connection)
    const result = await answered(answer, this.#clock, isSent, undefined, isKnown ? 'answer' : FIRST_ANSWER)
    this.#known.add(connection)
    return result
  }
}

/** Returns the first column of the first row of the last statement. */
async function ask(
  connection: PgConnection,
  statement: Omit<PgStatement, keyof typeof PG_TEXT>,
): Promise<unknown> {
  const results = [await connection.query({ ...statement, ...PG_TEXT })].flat()
  return results.at(-1)!.rows[0]?.[0]
}

function closed(): SqlError {
  return new SqlError('the box was closed', undefined, false, undefined)
}

const names = new Map<string, string>()

/** Returns the name of a prepared statement: the same for all boxes that share a connection. */
function nameOf(text: string): string {
  const name = names.get(text) ?? `signalbox_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  names.set(text, name)
  return name
}
