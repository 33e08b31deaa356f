/** Carries out one statement and gives the first column of its first row. */
export type Query = (text: string, values: readonly string[]) => Promise<unknown>

/** What carries out statements. Values are given as text. */
export interface StatementRunner {
  /**
   * Carries out one statement in a transaction of its own. Rejects with a {@link SqlError}.
   */
  readonly query: Query
  /** Carries out several statements in one transaction, which fails when `work` does. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>
}

/** What the engine needs of a client of PostgreSQL. */
export interface SqlClient extends StatementRunner {
  /** For messages: the place without passwords. */
  readonly name: string
  /** Whether the database is in this process, with one connection: the box waits for the caller's transaction. */
  readonly isEmbedded?: boolean
  /** Carries out statements without values in one transaction. */
  run(text: string): Promise<void>
  /**
   * Listens to a channel until `stop`.
   * @param heard takes each message. @param lost is called when messages may have been lost, and nothing more is heard.
   * It is not called before the promise has settled.
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

  /** Whether the server undid the transaction because of another one: a serialization failure or a deadlock. */
  get isUndone(): boolean {
    return this.code === '40001' || this.code === '40P01'
  }
}

/**
 * The server or a pooler ends the connection. Whether what was under way is committed is not known. It is when the
 * server refuses a new connection, as 57P03 says.
 */
const ENDING = /^(08|57P0[1245])/
/**
 * The server or a pooler has made no connection for the statement, or has ended an idle one (57P05), so the statement
 * was not carried out. Poolers have no codes of their own for this: PgBouncer sends 08P01, which it also sends when the
 * server has died under a statement.
 */
const REFUSED = /^(0800[14]|57P05)$/
const NOT_PASSED_ON =
  /login has been failing|query_wait_timeout|client_login_timeout|max_client_conn|failed to connect to remote server/
/** The client `postgres` has made no connection, or one of the two sides does not take the other's certificate. */
const UNCONNECTED = /^(CONNECT_TIMEOUT|CONNECTION_ENDED|UNABLE_TO_.*|.*CERT.*)$/

/** The failure of a statement. @param isSent whether the statement may have been sent when it failed. */
export function sqlError(error: unknown, isSent: boolean): SqlError {
  if (error instanceof SqlError) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  // Codes of Node can have five letters as well, such as EPIPE. They have no digit.
  const state = typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined
  const isUnclear =
    isSent && !isUnconnected(error) && (state === undefined || mayBeDone(state, String(message)))
  return new SqlError(String(message || code), state, isUnclear, error)
}

/** Whether a statement may have been carried out that ended with this SQLSTATE and message. */
function mayBeDone(state: string, message: string): boolean {
  return ENDING.test(state) && !REFUSED.test(state) && !NOT_PASSED_ON.test(message)
}

/** Whether the connection of a statement that failed is of no further use. */
export function endsConnection(error: unknown): boolean {
  return !(error instanceof SqlError) || error.code === undefined || ENDING.test(error.code)
}

/** Whether the error says that no connection could be made. */
function isUnconnected(error: unknown): boolean {
  const { code, errors, syscall } = error as NodeJS.ErrnoException & { readonly errors?: readonly unknown[] }
  // A host with several addresses fails with one error for each.
  if (errors) return errors.every(isUnconnected)
  return syscall === 'connect' || syscall === 'getaddrinfo' || UNCONNECTED.test(code ?? '')
}

/** What has to be escaped in an array. */
const ESCAPED = /["\\]/

/** An array of PostgreSQL as text. Text is quoted, so none of it is taken for a null. */
export function arrayText(items: readonly (string | number)[]): string {
  let text = ''
  for (const item of items) {
    if (text !== '') text += ','
    if (typeof item !== 'string') text += String(item)
    else text += `"${ESCAPED.test(item) ? item.replace(/["\\]/g, '\\$&') : item}"`
  }
  return `{${text}}`
}
