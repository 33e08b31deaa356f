import type { Clock } from '../../base/clock.js'
import type { Connection, Sqlite } from './driver.js'
import { OriginalFiles } from './original-files.js'
import { Transactions } from './transactions.js'
import { marksOf, WaiterBoard } from './waiter-board.js'
import { retryWhileBusy } from './while-busy.js'
import { WriteAheadLog } from './write-ahead-log.js'
import { WriteLock } from './write-lock.js'

/**
 * Size of a page, in bytes. A lock operation changes a row or two, and SQLite writes whole pages: small ones are
 * faster.
 */
const PAGE_SIZE = 1024
/** Length of the log from which it is checkpointed, in pages: about 4 MB, copied in a few milliseconds. */
const LOG_LENGTH = 4000
/** Number of transactions between two checks of the length of the log. */
const TRANSACTIONS_PER_CHECK = 16
/** A query that makes SQLite take the locks that it keeps while a connection is open. */
const READ = 'select count(*) from sqlite_schema'

interface Closable {
  close(): void
}

/**
 * A SQLite database in WAL mode that all processes and threads of the machine may write. Write transactions are fair,
 * `log.sync` makes commits durable, and the log is kept short.
 */
export class Database {
  /** The connection for checkpoints, opened for the first one. */
  #checkpointer: Connection | undefined
  readonly #openCheckpointer: () => Promise<Connection>
  readonly #board: WaiterBoard
  readonly #transactions: Transactions
  /**
   * Called directly after a rollback, to drop state in memory that depends on the transaction. Set by the owner of that
   * state.
   */
  rolledBack = (): void => undefined
  #sinceCheck = 0
  #checkpointing: Promise<void> | undefined
  #closed = false

  private constructor(
    /** For reads inside and outside of transactions, and for writes inside of them. */
    readonly connection: Connection,
    openCheckpointer: () => Promise<Connection>,
    readonly log: WriteAheadLog,
    readonly files: OriginalFiles,
    board: WaiterBoard,
    clock: Clock,
    patience: number,
  ) {
    this.#openCheckpointer = openCheckpointer
    this.#board = board
    const lock = new WriteLock(connection, board, clock, patience)
    this.#transactions = new Transactions(connection, lock, clock, () => this.rolledBack())
  }

  /**
   * Opens the database at a path, and creates it if it is missing. Its folder must exist.
   * @param patience how long a transaction waits for the write lock, in milliseconds.
   * @param others further files that must stay in place.
   * @throws SqliteError when the file can't be opened, is not a database, or stays locked.
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
      const openCheckpointer = () => opened(sqlite, path, clock)
      return new Database(connection, openCheckpointer, log, files, board, clock, patience)
    } catch (error) {
      closeAll(parts)
      throw error
    }
  }

  /**
   * Runs `work` in a write transaction: see Transactions.run. The commit survives the death of any process. Only
   * `log.sync` makes it survive a power failure.
   * @throws UnavailableError when a file was replaced: see OriginalFiles.check
   */
  async run<T>(work: () => T): Promise<T> {
    const result = await this.#transactions.run(() => {
      this.files.check()
      return work()
    })
    if (++this.#sinceCheck >= TRANSACTIONS_PER_CHECK) this.#checkLog()
    return result
  }

  /**
   * Runs `work` in a write transaction if no other connection of any process has the database open. SQLite keeps a lock
   * on the file for each connection, and the system frees it whenever the process ends. The database must have been
   * opened just before. After an error, it can only be closed.
   * @returns whether `work` has run
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

  /** Finishes all queued transactions and closes everything. Rejects a sync that has not started. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#checkpointing
    await this.#transactions.close()
    closeAll([this.log, this.#board, this.#checkpointer, this.connection])
  }

  #checkLog(): void {
    this.#sinceCheck = 0
    if (this.#closed || this.#checkpointing || !this.log.reaches(LOG_LENGTH)) return
    this.#checkpointing = this.#checkpoint().finally(() => (this.#checkpointing = undefined))
  }

  /**
   * Copies the log into the database, so that the next writer restarts the log. SQLite's automatic checkpoint would do
   * so after a commit, without the write lock. Up to SQLite 3.51.2, a writer that restarts the log just when that
   * checkpoint starts makes it skip pages, which corrupts the database (https://www.sqlite.org/wal.html#walresetbug).
   * No writer can restart the log while we hold the write lock. The slowest part, syncing the log, is done before
   * taking the lock. The checkpoint runs in a transaction of its own: with other writes in it, the log would not be
   * copied completely, and so not be restarted.
   */
  async #checkpoint(): Promise<void> {
    try {
      const checkpointer = (this.#checkpointer ??= await this.#openCheckpointer())
      await this.log.sync()
      await this.#transactions.runAlone(() => {
        if (this.log.reaches(LOG_LENGTH)) checkpointer.exec('pragma wal_checkpoint(passive)')
      })
    } catch {
      // The log keeps all commits, and grows until the next check tries again.
    }
  }
}

/** Opens a connection, puts the database into WAL mode, and reads once, which opens the log. */
async function opened(sqlite: Sqlite, path: string, clock: Clock): Promise<Connection> {
  const connection = sqlite.open(path)
  try {
    await retryWhileBusy(clock, () => {
      // These two set the format of a database without tables. With tables, they change nothing.
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
 * Closes all parts, and ignores their errors. The system frees a descriptor even if it reports an error, and an error
 * of one part must not keep the locks of the others.
 */
function closeAll(parts: readonly (Closable | undefined)[]): void {
  for (const part of parts) {
    try {
      part?.close()
    } catch {
      // The results of all commits were reported before.
    }
  }
}
