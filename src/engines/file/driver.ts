import { resolve } from 'node:path'
import { ifInstalled } from '../../base/if-installed.js'
import { missingPackage } from '../../base/missing-package.js'

/** The value of a column. Integers are exact up to 2^53 - 1. Text must not contain NUL. */
type SqlValue = string | number | null | Uint8Array

/** The columns of a row, in the order of the statement. */
type SqlRow = readonly SqlValue[]

/** A prepared statement. All calls are synchronous, and throw SqliteError when SQLite fails. */
export interface Statement {
  /** Returns the first row, or undefined if there is none. */
  get(...values: readonly SqlValue[]): SqlRow | undefined
  all(...values: readonly SqlValue[]): SqlRow[]
  /** Runs a statement that returns no rows, and returns the number of rows it changed. */
  run(...values: readonly SqlValue[]): number
}

/** One connection to one database file, for one thread. */
export interface Connection {
  /** Runs statements without parameters, and discards their rows. */
  exec(sql: string): void
  /** Prepares a statement. Its columns must have different names. */
  prepare(sql: string): Statement
  /** Begins a write transaction. Returns false when another connection has the write lock. */
  begin(): boolean
  /**
   * Rolls back an open transaction and closes the connection. The connection and its statements cannot be used again.
   * Further calls do nothing.
   */
  close(): void
}

/**
 * The result codes of SQLite that callers distinguish, and the beginning of their messages:
 * https://www.sqlite.org/rescode.html
 */
const CODES = [
  [5, 'BUSY', 'database is locked'],
  [8, 'READONLY', 'attempt to write a readonly database'],
  [10, 'IOERR', 'disk I/O error'],
  [11, 'CORRUPT', 'database disk image is malformed'],
  [13, 'FULL', 'database or disk is full'],
  [14, 'CANTOPEN', 'unable to open database file'],
  [26, 'NOTADB', 'file is not a database'],
] as const

/** An error of SQLite. `extended` is its extended result code, 0 if the library reports none. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError'
  readonly code: (typeof CODES)[number][1] | 'OTHER'

  constructor(
    message: string,
    readonly extended: number,
    cause: unknown,
  ) {
    super(message, { cause })
    this.code = CODES.find(([code]) => code === (extended & 0xff))?.[1] ?? 'OTHER'
  }
}

/** A SQLite library that this runtime can load. */
export interface Sqlite {
  readonly name: 'node:sqlite' | 'libsql'
  /** Opens a database file, and creates it if it is missing. Calls never wait: a locked database is BUSY at once. */
  open(path: string): Connection
}

interface NativeStatement {
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
  run(...values: unknown[]): { changes: number | bigint }
  /** Makes node:sqlite return rows as arrays. Before Node 22.16, rows are objects, with the columns in order. */
  setReturnArrays?(enabled: boolean): void
  /** Makes libsql return rows as arrays. Only for a statement that returns rows: a `reader`. */
  raw?(enabled: boolean): void
  readonly reader?: boolean
}

interface NativeDatabase {
  exec(sql: string): void
  prepare(sql: string): NativeStatement
  close(): void
}

interface NativeLibrary {
  readonly name: Sqlite['name']
  readonly Database: new (path: string) => NativeDatabase
}

/**
 * The property of `globalThis` with the loaded library, which all copies of this module in the process share. Two
 * SQLite libraries must never open one file in one process: POSIX drops all locks of a process on a file when any
 * descriptor of it is closed, and SQLite tracks only the descriptors of the same library
 * (https://www.sqlite.org/howtocorrupt.html, 2.2.1).
 */
const LOADED = Symbol.for('signalbox.sqlite')

/**
 * Loads `node:sqlite` if the runtime has it, else the package `libsql`.
 * @throws MissingPackageError that says what to install when there is neither; UnavailableError when the package can't
 * be loaded.
 */
export async function loadSqlite(): Promise<Sqlite> {
  const shared = globalThis as { [LOADED]?: Promise<NativeLibrary> | undefined }
  const loading = (shared[LOADED] ??= load())
  try {
    const library = await loading
    return { name: library.name, open: path => new NativeConnection(library, path) }
  } catch (error) {
    // The package may be installed before the next call.
    if (shared[LOADED] === loading) shared[LOADED] = undefined
    throw error
  }
}

async function load(): Promise<NativeLibrary> {
  const builtIn = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown
  if (builtIn !== undefined) {
    const { DatabaseSync } = builtIn as { DatabaseSync: NativeLibrary['Database'] }
    return { name: 'node:sqlite', Database: DatabaseSync }
  }
  const libsql = await ifInstalled('libsql', import('libsql'))
  if (libsql) return { name: 'libsql', Database: libsql.default as unknown as NativeLibrary['Database'] }
  throw missingPackage(
    `The file engine needs SQLite, from Node 22.13 or later (this is ${process.versions.node}) or from a package`,
    ['libsql'],
  )
}

/**
 * Returns a file name with which libsql lets SQLite itself read the file. Otherwise libsql adds a layer for encrypted
 * files, which ignores failed reads: SQLite then uses whatever is in memory as a page, and corrupts the database.
 */
function withoutCiphers(path: string): string {
  return `file:${resolve(path).split('/').map(encodeURIComponent).join('/')}?vfs=unix`
}

class NativeConnection implements Connection {
  #native: NativeDatabase | undefined
  /** By their text. */
  readonly #statements = new Map<string, NativeStatement>()

  constructor({ name, Database }: NativeLibrary, path: string) {
    this.#native = translated(() => new Database(name === 'libsql' ? withoutCiphers(path) : path))
  }

  exec(sql: string): void {
    const native = this.#opened()
    translated(() => native.exec(sql))
  }

  prepare(sql: string): Statement {
    this.#statement(sql)
    return {
      get: (...values) => {
        const row = this.#call(sql, 'get', values)
        return row === undefined ? undefined : rowOf(row)
      },
      all: (...values) => (this.#call(sql, 'all', values) as unknown[]).map(rowOf),
      run: (...values) => Number((this.#call(sql, 'run', values) as { changes: number | bigint }).changes),
    }
  }

  begin(): boolean {
    const native = this.#opened()
    // BUSY is common here, and half of its cost is a stack trace that is never used.
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    try {
      native.exec('begin immediate')
      return true
    } catch (error) {
      if ((resultCode(error) & 0xff) !== 5) throw toSqliteError(error)
      return false
    } finally {
      Error.stackTraceLimit = limit
    }
  }

  close(): void {
    const native = this.#native
    if (!native) return
    this.#native = undefined
    // libsql keeps a closed database open until its last statement is garbage-collected. So all references to
    // statements are dropped, and an open transaction is rolled back, because it would keep the write lock until then.
    this.#statements.clear()
    try {
      native.exec('rollback')
    } catch {
      // There was no transaction.
    }
    translated(() => native.close())
  }

  #call(sql: string, method: 'get' | 'all' | 'run', values: readonly SqlValue[]): unknown {
    check(values)
    const statement = this.#statement(sql)
    try {
      // libsql treats a single null or blob as named parameters, but an array always as positional ones.
      return statement.raw ? statement[method](values) : statement[method](...values)
    } catch (error) {
      // In libsql, a statement that has failed ignores the values of its next call, and uses the earlier ones.
      this.#statements.delete(sql)
      throw toSqliteError(error)
    }
  }

  #statement(sql: string): NativeStatement {
    const known = this.#statements.get(sql)
    if (known) return known
    const native = this.#opened()
    const statement = translated(() => native.prepare(sql))
    statement.setReturnArrays?.(true)
    if (statement.reader) statement.raw!(true)
    this.#statements.set(sql, statement)
    return statement
  }

  #opened(): NativeDatabase {
    if (!this.#native) throw new SqliteError('the database is closed', 0, undefined)
    return this.#native
  }
}

function rowOf(row: unknown): SqlRow {
  return Array.isArray(row) ? (row as SqlRow) : (Object.values(row as object) as SqlRow)
}

/** Rejects values that a library would misinterpret: libsql truncates text at NUL, and crashes on a boolean. */
function check(values: readonly unknown[]): void {
  for (const value of values) {
    const isPlain = typeof value === 'number' || value === null || value instanceof Uint8Array
    if (typeof value === 'string' ? value.includes('\0') : !isPlain)
      throw new TypeError('SQL values must be text without NUL, numbers, null or Uint8Array')
  }
}

function translated<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw toSqliteError(error)
  }
}

function toSqliteError(error: unknown): unknown {
  const extended = resultCode(error)
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof SqliteError ? error : new SqliteError(message, extended, error)
}

/** Returns SQLite's extended result code: `errcode` in node:sqlite, `rawCode` in libsql; 0 for any other error. */
function resultCode(error: unknown): number {
  const { errcode, rawCode, message } = error as { errcode?: unknown; rawCode?: unknown; message?: unknown }
  if (typeof errcode === 'number') return errcode
  if (typeof rawCode === 'number') return rawCode
  if (typeof message !== 'string') return 0
  // libsql has the code of a failed open only in its message: `ConnectionFailed("... path: 14")`.
  const failedOpen = /^ConnectionFailed\(.*: (\d+)"\)$/s.exec(message)
  if (failedOpen) return Number(failedOpen[1])
  // Deno has no code for `exec` and a failed open, but begins their messages with SQLite's text.
  return CODES.find(([, , text]) => message.startsWith(text))?.[0] ?? 0
}
