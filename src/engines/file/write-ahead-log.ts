import { closeSync, fdatasync, fstatSync, openSync, readSync } from 'node:fs'

interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

/** Sizes in SQLite's file format, https://www.sqlite.org/fileformat.html#the_write_ahead_log */
const LOG_HEADER = 32
const FRAME_HEADER = 24

/**
 * SQLite's write-ahead log file, through a descriptor of our own, for two things SQLite does only while it holds the
 * write lock or not at all: putting commits on disk, and reading the length of the log.
 *
 * Commits are made with `synchronous=NORMAL`, which writes them to the log without waiting for the disk. Syncing the
 * file afterwards gives what `FULL` gives: FULL's only addition is the same sync at the same place, before the lock is
 * let go. What NORMAL syncs itself stays as it is: the header of each new round of the log, and around a checkpoint the
 * log first, then the database. So a commit is on disk once the log was synced after it, or a checkpoint has passed.
 * The log is one sequence, so a commit can't survive without those before it.
 *
 * The file stays the same one while a connection of this process is open, because SQLite deletes it only with the last
 * connection. SQLite holds no locks on it; closing a second descriptor of the database or the `-shm` file would drop
 * the locks of the whole process, so those two are never opened here.
 */
export class WriteAheadLog {
  readonly #descriptor: number
  #syncing = false
  #waiting: Waiter[] = []
  #failure: Error | undefined
  #closed = false

  private constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Opens the log of a database through which a connection of this process has read already. */
  static open(database: string): WriteAheadLog {
    return new WriteAheadLog(openSync(`${database}-wal`, 'r+'))
  }

  /**
   * Resolves when everything committed before this call is on disk. Calls that come while the disk is busy share the
   * next sync. Rejects when the disk fails; from then on every call does, because the system reports a lost write once
   * and forgets it.
   */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      this.#waiting.push({ resolve, reject })
      if (!this.#syncing) this.#start()
    })
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /**
   * Whether the current round of the log has at least this many frames (pages), as far as can be seen without a lock.
   */
  reaches(frames: number): boolean {
    const header = Buffer.allocUnsafe(LOG_HEADER)
    if (readSync(this.#descriptor, header, 0, LOG_HEADER, 0) < LOG_HEADER) return false
    const pageSize = header.readUInt32BE(8)
    const frame = Buffer.allocUnsafe(FRAME_HEADER)
    const at = LOG_HEADER + (frames - 1) * (FRAME_HEADER + pageSize)
    if (readSync(this.#descriptor, frame, 0, FRAME_HEADER, at) < FRAME_HEADER) return false
    // Frames of an earlier round stay in the file; they carry another salt than the header.
    return header.compare(frame, 8, 16, 16, 24) === 0
  }

  /** Gives the descriptor up, after the sync under way. Calls still waiting are rejected. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#fail(new Error('The log was closed'))
    if (!this.#syncing) this.#letGo()
  }

  #start(): void {
    const served = this.#waiting
    this.#waiting = []
    this.#syncing = true
    fdatasync(this.#descriptor, error => {
      this.#syncing = false
      const problem = error ?? this.#missing()
      if (this.#closed) this.#letGo()
      if (problem !== undefined) this.#fail(problem)
      for (const waiter of served) {
        if (problem === undefined) waiter.resolve()
        else waiter.reject(problem)
      }
      if (this.#waiting.length > 0) this.#start()
    })
  }

  /** Syncing a file that was deleted meanwhile succeeds and keeps nothing. */
  #missing(): Error | undefined {
    try {
      if (fstatSync(this.#descriptor).nlink > 0) return undefined
    } catch (error) {
      return error as Error
    }
    return new Error('The log was deleted while the database was open')
  }

  #letGo(): void {
    try {
      closeSync(this.#descriptor)
    } catch {
      // The system frees the descriptor even if it reports an error, and each sync had its own answer.
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error
    const waiting = this.#waiting
    this.#waiting = []
    for (const waiter of waiting) waiter.reject(this.#failure)
  }
}
