import type { Clock } from '../../base/clock.js'
import type { Connection, Sqlite } from './driver.js'
import { OriginalFiles } from './original-files.js'
import { Transactions } from './transactions.js'
import { marksOf, WaiterBoard } from './waiter-board.js'
import { retryWhileBusy } from './while-busy.js'
import { WriteAheadLog } from './write-ahead-log.js'
import { WriteLock } from './write-lock.js'

/** Bytes. A lock operation changes a row or two, and SQLite writes whole pages: small ones are written sooner. */
const PAGE_SIZE = 1024
/** Pages of the log after which it is copied into the database: about 4 MB, copied in a few milliseconds. */
const LOG_LENGTH = 4000
/** Transactions between two looks at the length of the log. */
const LOOK = 16
/** What makes SQLite take up the locks that it keeps while a connection is open. */
const READ = 'select count(*) from sqlite_schema'

interface Closable {
  close(): void
}

/**
 * A SQLite database in WAL mode that every process and thread of the machine may write: fair write transactions,
 * durable when asked, with the log kept short.
 */
export class Database {
  /** For reading, inside and outside of transactions, and for writing inside of them. */
  readonly connection: Connection
  /** Opened when there is something to copy for the first time. */
  #copier: Connection | undefined
  readonly #openCopier: () => Promise<Connection>
  readonly #log: WriteAheadLog
  readonly files: OriginalFiles
  readonly #board: WaiterBoard
  readonly #transactions: Transactions
  /**
   * Called after a transaction was rolled back, before anything else is done: what is kept in memory of it is wrong.
   * Set by the owner of that memory.
   */
  rolledBack = (): void => undefined
  #sinceLook = 0
  #copying: Promise<void> | undefined
  #closed = false

  private constructor(
    connection: Connection,
    openCopier: () => Promise<Connection>,
    log: WriteAheadLog,
    files: OriginalFiles,
    board: WaiterBoard,
    clock: Clock,
    patience: number,
  ) {
    this.connection = connection
    this.#openCopier = openCopier
    this.#log = log
    this.files = files
    this.#board = board
    const lock = new WriteLock(connection, board, clock, patience)
    this.#transactions = new Transactions(connection, lock, clock, () => this.rolledBack())
  }

  /**
   * Opens the database at a path, and creates it when it is absent; its folder must be there.
   * @param patience how long a transaction waits for the write lock, milliseconds.
   * @param others further files that must stay where they are.
   * @throws SqliteError when the file can't be opened, is no database, or stays locked.
   */
  static async open(
    sqlite: Sqlite,
    path: string,
    clock: Clock,
    patience: number,
    others: readonly string[] = [],
  ): Promise<Database> {
    const parts: Closable[] = []
    try {
      const connection = await opened(sqlite, path, clock)
      parts.unshift(connection)
      const board = WaiterBoard.open(path, clock)
      parts.unshift(board)
      const log = WriteAheadLog.open(path)
      parts.unshift(log)
      const needed = [path, `${path}-wal`, `${path}-shm`, marksOf(path), ...others]
      const files = OriginalFiles.of(needed, clock)
      const openCopier = () => opened(sqlite, path, clock)
      return new Database(connection, openCopier, log, files, board, clock, patience)
    } catch (error) {
      closeAll(parts)
      throw error
    }
  }

  /**
   * Runs `work` in a write transaction: see Transactions.run. Committed is safe from the death of any process, not from
   * a power failure: that takes `sync`.
   * @throws as `check`
   */
  async run<T>(work: () => T): Promise<T> {
    const result = await this.#transactions.run(() => {
      this.check()
      return work()
    })
    if (++this.#sinceLook >= LOOK) this.#look()
    return result
  }

  /**
   * Runs `work` in a write transaction if no other connection of any process has the database open, and returns whether
   * it did: for each connection SQLite keeps a lock on the file, which the system frees when the process ends, however
   * that ends. For a database that was just opened; after an error it can only be closed.
   */
  runIfUnshared(work: () => void): boolean {
    this.connection.exec('pragma locking_mode=exclusive')
    const unshared = this.connection.begin()
    if (unshared) {
      work()
      this.connection.exec('commit')
    }
    // The mode ends with the next read.
    this.connection.exec(`pragma locking_mode=normal; ${READ}`)
    return unshared
  }

  /**
   * Makes sure that the files are still those that others open under this path; looks at most every few milliseconds.
   * @throws UnavailableError when they were deleted, moved or replaced.
   */
  check(): void {
    this.files.check()
  }

  /** Whether a sync has failed, so that every later one does. */
  get hasFailed(): boolean {
    return this.#log.hasFailed
  }

  /** Resolves when everything committed before is on disk: see WriteAheadLog.sync. */
  sync(): Promise<void> {
    return this.#log.sync()
  }

  /** Finishes the transactions under way and closes all. A `sync` that waits for its turn is rejected. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#copying
    await this.#transactions.close()
    closeAll([this.#log, this.#board, this.#copier, this.connection])
  }

  #look(): void {
    this.#sinceLook = 0
    if (this.#closed || this.#copying || !this.#isLogLong()) return
    this.#copying = this.#copyBack().finally(() => (this.#copying = undefined))
  }

  /** False when that can't be read: the commits before this look are done, so it must not fail. */
  #isLogLong(): boolean {
    try {
      return this.#log.reaches(LOG_LENGTH)
    } catch {
      return false
    }
  }

  /**
   * Copies the log into the database, so that it starts from its beginning again. SQLite would do so by itself after a
   * commit, without the write lock; but then, up to SQLite 3.51.2, a writer that restarts the log just when the
   * copying starts makes it skip pages, which corrupts the database (https://www.sqlite.org/wal.html#walresetbug).
   * No writer restarts the log while we hold the write lock. The slowest part, putting the log on disk, is done before.
   * The transaction is alone because one that writes would leave a log that is not wholly copied, and so not restarted.
   */
  async #copyBack(): Promise<void> {
    try {
      const copier = (this.#copier ??= await this.#openCopier())
      await this.#log.sync()
      await this.#transactions.runAlone(() => {
        if (this.#log.reaches(LOG_LENGTH)) copier.exec('pragma wal_checkpoint(passive)')
      })
    } catch {
      // The log grows meanwhile and holds all commits; the next process that looks at it tries again.
    }
  }
}

/** A connection that is ready: a database in WAL mode, read once, so that its log is open. */
async function opened(sqlite: Sqlite, path: string, clock: Clock): Promise<Connection> {
  const connection = sqlite.open(path)
  try {
    await retryWhileBusy(clock, () => {
      // Before the first table is there these two settle the format; later they change nothing.
      connection.exec(`pragma page_size=${PAGE_SIZE}; pragma journal_mode=wal`)
      connection.exec(
        'pragma synchronous=normal; pragma wal_autocheckpoint=0; pragma journal_size_limit=16777216; ' +
          `pragma cache_size=-8000; pragma temp_store=memory; ${READ}`,
      )
    })
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * Closes all of these. What can't be closed in order is closed by the system, which frees the descriptor even if it
 * reports an error, and one error must not keep the locks of the others.
 */
function closeAll(parts: readonly (Closable | undefined)[]): void {
  for (const part of parts) {
    try {
      part?.close()
    } catch {
      // Every commit was reported before.
    }
  }
}
