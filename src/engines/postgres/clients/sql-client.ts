/** Runs one statement and returns the first column of its first row. */
export type Query = (text: string, values: readonly string[]) => Promise<unknown>

/** Runs statements over connections of a client of PostgreSQL. Values are passed as text. */
export interface SqlStatements {
  /** The address without passwords, for messages. */
  readonly name: string
  /** Runs one statement in a transaction of its own. Rejects with a {@link SqlError}, as `run` does. */
  readonly query: Query
  /**
   * Runs several statements without values, in one round trip and one transaction. It must be harmless to execute them
   * twice. Returns the first column of the first row of the last one.
   */
  run(text: string): Promise<unknown>
}

/** A client of PostgreSQL, as the engine uses it. */
export interface SqlClient extends SqlStatements {
  /**
   * Whether the database runs in this process, on one connection. Then the box waits for transactions of the caller's.
   */
  readonly isEmbedded?: boolean
  /**
   * Does work once for all boxes that share the connections and ask for the same work meanwhile. Undefined if they are
   * not shared.
   */
  together?(work: (statements: SqlStatements) => Promise<void>): Promise<void>
  /**
   * Runs statements for all boxes that share the connections, also after this one is closed. All of them have the same
   * object. Undefined if the connections are not shared.
   */
  readonly ofAll?: SqlStatements
  /**
   * Listens on a channel until `stop`.
   * @param onMessage receives each message, and its channel: the box may listen on others over the same connection.
   * @param onLost is called when messages may have been lost; no more follow. It is not called before the promise has
   * settled.
   */
  listen(
    channel: string,
    onMessage: (message: string, channel: string) => void,
    onLost: () => void,
  ): Promise<Listening>
  /** Ends the connections that were made for the box. */
  close(): Promise<void>
}

/** A subscription to a channel. */
export interface Listening {
  /** Runs a statement over the connection that listens. It has no limit of its own. */
  readonly query: Query
  /** Runs statements without values over it in one transaction. */
  run(text: string): Promise<unknown>
  /** @param isBroken whether others can no longer listen over the connection */
  stop(isBroken?: boolean): Promise<void>
}

/** A statement failed. */
export class SqlError extends Error {
  /**
   * @param code the SQLSTATE of the server's reply; undefined without one.
   * @param isUnclear whether the statement may have been executed.
   */
  constructor(
    message: string,
    readonly code: string | undefined,
    readonly isUnclear: boolean,
    cause: unknown,
  ) {
    super(message, { cause })
  }

  /** Whether the server rolled the transaction back in favour of another: a serialization failure or a deadlock. */
  get isUndone(): boolean {
    return this.code === '40001' || this.code === '40P01'
  }

  /**
   * Whether the statement was lost with its connection, perhaps after it was executed. Over another connection, the
   * server may execute it.
   */
  get isLost(): boolean {
    return this.isUnclear || this.code === IDLE_FOR_TOO_LONG
  }
}

/** SQLSTATE: the server has ended a connection that was idle for longer than `idle_session_timeout`. */
const IDLE_FOR_TOO_LONG = '57P05'

/**
 * SQLSTATEs with which the server or a pooler ends the connection. Then it is unknown whether a running statement was
 * committed. Not 57P03, with which a server rejects a new connection.
 */
const ENDING = /^(08|25P0[34]|57P0[1245])/
/**
 * Those of them with which the statement was not executed: the server or a pooler could not connect, or has ended an
 * idle connection (57P05) or transaction (25P03, 25P04). Poolers have no SQLSTATEs of their own for this. PgBouncer
 * sends 08P01, also if the server dies during a statement, so its messages are compared.
 */
const REFUSED = /^(0800[14]|25P0[34]|57P05)$/
const NOT_PASSED_ON =
  /login has been failing|query_wait_timeout|client_login_timeout|max_client_conn|failed to connect to remote server/
/** SQLSTATE: the server accepts no writes. */
export const READ_ONLY = '25006'
/** Codes of failed connections: the package `postgres` could not connect, or one side rejected a certificate. */
const UNCONNECTED = /^(CONNECT_TIMEOUT|CONNECTION_ENDED|UNABLE_TO_.*|.*CERT.*)$/

/** Converts the failure of a statement. @param isSent whether the statement may have been sent when it failed. */
export function sqlError(error: unknown, isSent: boolean): SqlError {
  if (error instanceof SqlError) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  // Node has codes with five letters, too, such as EPIPE. They have no digit.
  const state = typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined
  const isUnclear =
    isSent && !isUnconnected(error) && (state === undefined || mayBeDone(state, String(message)))
  return new SqlError(String(message || code), state, isUnclear, error)
}

/** Whether a statement that failed with this SQLSTATE and message may have been executed. */
function mayBeDone(state: string, message: string): boolean {
  return ENDING.test(state) && !REFUSED.test(state) && !NOT_PASSED_ON.test(message)
}

/** Whether a connection can't be used after this error. */
export function endsConnection(error: unknown): boolean {
  return (
    !(error instanceof SqlError) || error.code === undefined || ENDING.test(error.code) || isReadOnly(error)
  )
}

/**
 * Whether the connection leads to a server that accepts no writes. After a failover, a new connection leads to another
 * server.
 */
export function isReadOnly(error: unknown): boolean {
  return error instanceof SqlError && error.code === READ_ONLY
}

/** Whether the error says that no connection could be made. */
function isUnconnected(error: unknown): boolean {
  const { code, errors, syscall } = error as NodeJS.ErrnoException & { readonly errors?: readonly unknown[] }
  // A host with several addresses fails with one error for each.
  if (errors) return errors.every(isUnconnected)
  return syscall === 'connect' || syscall === 'getaddrinfo' || UNCONNECTED.test(code ?? '')
}

/** Characters that must be escaped in an array. */
const ESCAPED = /["\\]/

/** Returns items as a PostgreSQL array. Text is quoted, so that it is never read as a null. */
export function arrayText(items: readonly (string | number)[]): string {
  let text = ''
  for (const item of items) {
    if (text !== '') text += ','
    if (typeof item !== 'string') text += String(item)
    else text += `"${ESCAPED.test(item) ? item.replace(/["\\]/g, '\\$&') : item}"`
  }
  return `{${text}}`
}
