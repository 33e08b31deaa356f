import { createHash } from 'node:crypto'
import type { Clock } from '../../../clock.js'
import {
  SqlError,
  sqlError,
  STATEMENT_TIMEOUT,
  type Listening,
  type Query,
  type SqlClient,
} from './sql-client.js'

/** What is used of a connection of `pg`, whose types may not be installed. */
export interface PgConnection {
  query(statement: PgStatement | string): Promise<{ readonly rows: readonly (readonly unknown[])[] }>
  on(
    event: 'notification',
    heard: (message: { readonly channel: string; readonly payload?: string }) => void,
  ): unknown
  on(event: 'error' | 'end', lost: (error?: Error) => void): unknown
  /** The connection keeps no process alive. */
  unref(): void
  off(event: 'notification' | 'error', listener: (...given: never[]) => void): unknown
}

interface PgStatement {
  readonly text: string
  readonly values: readonly string[]
  readonly name?: string
  readonly rowMode: 'array'
}

/** A connection that a pool has lent. */
export interface LentConnection extends PgConnection {
  /** Gives it back, or ends it. */
  release(end?: boolean): void
}

/** What is used of a pool of `pg`. */
export interface PgPool {
  connect(): Promise<LentConnection>
  end(): Promise<void>
}

/** A prepared statement is not there, or is there already: a pooler has given the box another connection. */
const MISPLACED = ['26000', '42P05', '08P01']

/** Statements over `pg`: a pool of the caller's, or the box's own. */
export class PgClient implements SqlClient {
  readonly name: string
  readonly #pool: PgPool
  readonly #isOwn: boolean
  readonly #clock: Clock
  /** Whether statements can be prepared on the connection: not behind a pooler that changes it. */
  #prepares = true

  /** @param isOwn whether the pool is ended with the box. */
  constructor(name: string, pool: PgPool, isOwn: boolean, clock: Clock) {
    this.name = name
    this.#pool = pool
    this.#isOwn = isOwn
    this.#clock = clock
  }

  readonly query: Query = async (text, values) => {
    try {
      return await this.#with(connection => this.#ask(connection, text, values))
    } catch (error) {
      if (!this.#prepares || !(error instanceof SqlError) || !MISPLACED.includes(error.code!)) throw error
      this.#prepares = false
      return this.#with(connection => this.#ask(connection, text, values))
    }
  }

  async run(text: string): Promise<void> {
    await this.#with(connection => this.#answered(connection.query(text)))
  }

  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#with(async connection => {
      await this.#answered(connection.query('begin'))
      try {
        const result = await work((text, values) => this.#ask(connection, text, values))
        await this.#answered(connection.query('commit'))
        return result
      } catch (error) {
        await this.#answered(connection.query('rollback'))
        throw error
      }
    })
  }

  async listen(channel: string, heard: (message: string) => void, lost: () => void): Promise<Listening> {
    const connection = await this.#connect()
    const onMessage = (message: { readonly channel: string; readonly payload?: string }): void => {
      if (message.channel === channel) heard(message.payload ?? '')
    }
    let isOver = false
    const end = (isBroken: boolean): void => {
      if (isOver) return
      isOver = true
      connection.off('notification', onMessage)
      connection.release(true)
      if (isBroken) lost()
    }
    connection.on('notification', onMessage)
    connection.on('error', () => end(true))
    connection.on('end', () => end(true))
    try {
      await this.#answered(connection.query(`listen "${channel}"`))
      connection.unref()
    } catch (error) {
      end(false)
      throw error
    }
    return {
      stop: () => {
        end(false)
        return Promise.resolve()
      },
    }
  }

  async close(): Promise<void> {
    if (this.#isOwn) await this.#pool.end()
  }

  async #with<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    const connection = await this.#connect()
    let isBroken = true
    try {
      const result = await work(connection)
      isBroken = false
      return result
    } catch (error) {
      isBroken = !(error instanceof SqlError) || error.code === undefined || error.isUnclear
      throw error
    } finally {
      connection.off('error', ignore)
      connection.release(isBroken)
    }
  }

  async #connect(): Promise<LentConnection> {
    const connecting = this.#pool.connect()
    try {
      const connection = await this.#answered(connecting, false)
      // The statement that is under way fails as well. Without this, the event would end the process.
      connection.on('error', ignore)
      return connection
    } catch (error) {
      // One that comes later is of no use any more.
      connecting.then(
        connection => connection.release(),
        () => undefined,
      )
      throw error
    }
  }

  async #ask(connection: PgConnection, text: string, values: readonly string[]): Promise<unknown> {
    const name = this.#prepares ? { name: nameOf(text) } : {}
    const asked = connection.query({ text, values, rowMode: 'array', ...name })
    return (await this.#answered(asked)).rows[0]?.[0]
  }

  /** The answer, or the failure as a SqlError; also when there is none in time. */
  #answered<T>(answer: Promise<T>, isSent = true): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(
        STATEMENT_TIMEOUT,
        () => reject(new SqlError(`no answer within ${STATEMENT_TIMEOUT} ms`, undefined, isSent, undefined)),
        true,
      )
      answer.then(
        result => {
          timer.cancel()
          resolve(result)
        },
        (error: unknown) => {
          timer.cancel()
          reject(sqlError(error, isSent))
        },
      )
    })
  }
}

function ignore(): void {
  // It is told elsewhere.
}

const names = new Map<string, string>()

/** The name under which a statement is prepared: the same for all boxes that share a connection. */
function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = `signalbox_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
    names.set(text, name)
  }
  return name
}
