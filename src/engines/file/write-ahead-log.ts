import { closeSync, fdatasync, fstatSync, openSync, readSync } from 'node:fs'

interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

/** Sizes in SQLite's file format, https://www.sqlite.org/fileformat.html#the_write_ahead_log */
const LOG_HEADER = 32
const FRAME_HEADER = 24

/**
 * SQLite's write-ahead log file, opened by a descriptor of our own for two operations that SQLite offers only under the
 * write lock or not at all: syncing commits to disk, and reading the length of the log.
 *
 * Commits use `synchronous=NORMAL`, which writes them to the log without waiting for the disk. A sync of the file after
 * a commit makes it as durable as `FULL`, which only adds the same sync to the commit, before it releases the lock.
 * With NORMAL, SQLite still syncs the header each time that the log is restarted, and at a checkpoint first the log and
 * then the database. So a commit is on disk once the log was synced after it, or a checkpoint has completed. The log is
 * one sequence, so a commit survives only with all commits before it.
 *
 * The file stays the same while a connection of this process is open, because SQLite deletes it only with the last
 * connection. SQLite holds no locks on it. Never open the database or the `-shm` file here: closing a second descriptor
 * would drop all locks of the process on that file.
 */
export class WriteAheadLog {
  readonly #descriptor: number
  #syncing = false
  #waiting: Waiter[] = []
  /** The error of a sync that has failed, with which every later one rejects. */
  failure: Error | undefined
  #closed = false

  private constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Opens the log of a database. A connection of this process must have read the database before. */
  static open(database: string): WriteAheadLog {
    return new WriteAheadLog(openSync(`${database}-wal`, 'r+'))
  }

  /**
   * Resolves when everything committed before this call is on disk. Calls during a sync share the next one. Rejects
   * when the disk fails. All later calls then reject, too, because the system reports a lost write only once.
   */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) return reject(this.failure)
      this.#waiting.push({ resolve, reject })
      if (!this.#syncing) this.#start()
    })
  }

  /**
   * Whether the log has at least this number of frames (pages) since it was last restarted; false if it can't be read.
   * Reads without a lock, so the answer may be out of date.
   */
  reaches(frames: number): boolean {
    const header = Buffer.allocUnsafe(LOG_HEADER)
    const frame = Buffer.allocUnsafe(FRAME_HEADER)
    try {
      if (readSync(this.#descriptor, header, 0, LOG_HEADER, 0) < LOG_HEADER) return false
      const pageSize = header.readUInt32BE(8)
      const at = LOG_HEADER + (frames - 1) * (FRAME_HEADER + pageSize)
      if (readSync(this.#descriptor, frame, 0, FRAME_HEADER, at) < FRAME_HEADER) return false
    } catch {
      return false
    }
    // Frames from before the restart stay in the file. Their salt differs from that of the header.
    return header.compare(frame, 8, 16, 16, 24) === 0
  }

  /** Closes the descriptor, after a sync that is running. Rejects waiting calls. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#fail(new Error('the log was closed'))
    if (!this.#syncing) this.#closeDescriptor()
  }

  #start(): void {
    const batch = this.#waiting
    this.#waiting = []
    this.#syncing = true
    fdatasync(this.#descriptor, error => {
      this.#syncing = false
      const problem = error ?? this.#deletedError()
      if (this.#closed) this.#closeDescriptor()
      if (problem !== undefined) this.#fail(problem)
      for (const waiter of batch) {
        if (problem === undefined) waiter.resolve()
        else waiter.reject(problem)
      }
      if (this.#waiting.length > 0) this.#start()
    })
  }

  /** Returns an error if the log was deleted: the sync of a deleted file succeeds, but its contents are lost. */
  #deletedError(): Error | undefined {
    try {
      if (fstatSync(this.#descriptor).nlink > 0) return undefined
    } catch (error) {
      return error as Error
    }
    return new Error('the log was deleted while the database was open')
  }

  #closeDescriptor(): void {
    try {
      closeSync(this.#descriptor)
    } catch {
      // The system frees the descriptor even if it reports an error, and each sync has reported its own result.
    }
  }

  #fail(error: Error): void {
    this.failure ??= error
    const waiting = this.#waiting
    this.#waiting = []
    for (const waiter of waiting) waiter.reject(this.failure)
  }
}
