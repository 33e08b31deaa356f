/** Carries out one statement and gives the first column of its first row. */
export type Query = (text: string, values: readonly string[]) => Promise<unknown>

/** What the engine needs of a client of PostgreSQL. Values are given as text. */
export interface SqlClient {
  /** For messages: the place without passwords. */
  readonly name: string
  /**
   * Carries out one statement in a transaction of its own. Rejects with a {@link SqlError}.
   */
  readonly query: Query
  /** Carries out statements without values in one transaction. */
  run(text: string): Promise<void>
  /** Carries out several statements in one transaction, which fails when `work` does. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>
  /**
   * Listens to a channel on a connection of its own, until `stop`.
   * @param heard takes each message. @param lost is called when the connection has ended; nothing more is heard.
   */
  listen(channel: string, heard: (message: string) => void, lost: () => void): Promise<Listening>
  /** Ends the connections that were made for the box. */
  close(): Promise<void>
}

/** A channel that is listened to. */
export interface Listening {
  stop(): Promise<void>
}

/** A statement failed. */
export class SqlError extends Error {
  /**
   * @param code the SQLSTATE that the server answered with; undefined when it did not answer.
   * @param isUnclear whether the statement may have been carried out.
   */
  constructor(
    message: string,
    readonly code: string | undefined,
    readonly isUnclear: boolean,
    cause: unknown,
  ) {
    super(message, { cause })
  }
}

/** How long a statement may take, the way to the server and back included: milliseconds. */
export const STATEMENT_TIMEOUT = 5000

/** The server ends the connection. Whether what was under way is committed is not known. */
const ENDING = /^57P0/

/** The failure of a statement. @param isSent whether the statement was sent when it failed. */
export function sqlError(error: unknown, isSent: boolean): SqlError {
  if (error instanceof SqlError) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  const state = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
  const isUnclear = isSent && (state === undefined || ENDING.test(state))
  return new SqlError(String(message), state, isUnclear, error)
}

/** An array of PostgreSQL as text. */
export function arrayText(items: readonly (string | number | bigint | boolean | null)[]): string {
  const parts = items.map(item =>
    typeof item === 'string' ? `"${item.replace(/["\\]/g, '\\$&')}"` : item === null ? 'null' : String(item),
  )
  return `{${parts.join(',')}}`
}
