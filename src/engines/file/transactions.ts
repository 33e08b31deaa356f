import type { Clock } from '../../base/clock.js'
import type { Awaitable } from '../../engine/contract.js'
import { endOfTick, TickBatcher } from '../../engine/kit/tick-batcher.js'
import { ClosedError } from '../../base/errors.js'
import { SqliteError, type Connection } from './driver.js'
import type { WriteLock } from './write-lock.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

/** SQLite's extended result code for a write that failed. */
const WRITE_FAILED = 778

/** A commit failed, and it may have been applied. */
export class UnclearCommitError extends Error {}

interface Work {
  readonly run: () => unknown
  readonly alone: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Work that was done in a transaction which is still to be committed. */
interface Done {
  readonly work: Work
  readonly value: unknown
}

/** How long one transaction may take up further work, milliseconds. */
const BATCH = 2
/** So many transactions begin at the end of a tick; the next one lets the event loop turn, so sockets can't starve. */
const TICKS = 8

/**
 * The write transactions of one connection. All that one tick brings becomes one transaction, in the order of the
 * calls.
 */
export class Transactions {
  readonly #connection: Connection
  readonly #lock: WriteLock
  readonly #clock: Clock
  readonly #rolledBack: () => void
  readonly #queue = new TickBatcher<Work>(
    () => this.#next(),
    run => this.#defer(run),
  )
  #ticks = 0
  #closed = false

  /**
   * @param rolledBack is called after each transaction that was begun and came to nothing, before anything else is
   * done: what is kept in memory of it is wrong.
   */
  constructor(connection: Connection, lock: WriteLock, clock: Clock, rolledBack: () => void) {
    this.#connection = connection
    this.#lock = lock
    this.#clock = clock
    this.#rolledBack = rolledBack
  }

  /**
   * Runs `work` inside a write transaction and resolves with its result once that is committed. `work` is synchronous
   * and has no effects outside the database: it runs again when another part of the transaction fails. What it throws
   * rejects this call alone, and nothing it wrote stays.
   * Rejects with SqliteError when SQLite fails, code `BUSY` when it timed out waiting for the lock: nothing was written.
   * Rejects with UnclearCommitError when the commit may have been applied.
   */
  run<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, false)
  }

  /** The same in a transaction of its own. */
  runAlone<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, true)
  }

  /** Refuses further work, and resolves when what was taken on is done. */
  close(): Promise<void> {
    this.#closed = true
    return this.#queue.idle()
  }

  #enqueue<T>(run: () => T, alone: boolean): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError('The database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.add({ run, alone, resolve: resolve as (value: unknown) => void, reject })
    })
  }

  #defer(run: () => void): void {
    if (++this.#ticks < TICKS) return endOfTick(run)
    this.#ticks = 0
    runtimeTimers.setImmediate(run)
  }

  /** Makes the next transaction, or rejects all work when none can begin. */
  #next(): Awaitable<void> {
    try {
      if (this.#lock.tryBegin()) return this.#transact()
    } catch (error) {
      return this.#refuse(error)
    }
    return this.#lock.begin().then(
      () => this.#transact(),
      (error: unknown) => this.#refuse(error),
    )
  }

  /** Does queued work in the transaction that was just begun, and commits. */
  #transact(): void {
    const done: Done[] = []
    try {
      if (this.#work(done)) this.#connection.exec('commit')
    } catch (error) {
      this.#rollBack()
      const failure = isUnclear(error)
        ? new UnclearCommitError((error as Error).message, { cause: error })
        : error
      for (const { work } of done) work.reject(failure)
      return
    }
    for (const { work, value } of done) work.resolve(value)
  }

  /** Works the queue off until it is empty or time is up; false when that failed and was rolled back. */
  #work(done: Done[]): boolean {
    const until = this.#clock.now() + BATCH
    const queue = this.#queue.take()
    let next = 0
    do {
      const work = queue[next++]!
      try {
        done.push({ work, value: work.run() })
      } catch (error) {
        // Only a rollback takes back what it wrote, so the work before it must be done again.
        this.#rollBack()
        this.#queue.putBack([...done.map(entry => entry.work), ...queue.slice(next)])
        done.length = 0
        work.reject(error)
        return false
      }
    } while (
      next < queue.length &&
      !queue[next]!.alone &&
      !queue[next - 1]!.alone &&
      this.#clock.now() < until
    )
    this.#queue.putBack(queue.slice(next))
    return true
  }

  #rollBack(): void {
    try {
      this.#connection.exec('rollback')
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    this.#rolledBack()
  }

  #refuse(error: unknown): void {
    for (const work of this.#queue.take()) work.reject(error)
  }
}

/**
 * Whether a commit that failed may still be applied. SQLite ends it by writing its last page to the log. If a write
 * fails, that page is incomplete, and everybody ignores the transaction. What fails after it, as in the index of the
 * log, leaves a complete one, which the next process that recovers the log applies.
 */
function isUnclear(error: unknown): boolean {
  if (!(error instanceof SqliteError)) return false
  return !['BUSY', 'FULL'].includes(error.code) && error.extended !== WRITE_FAILED
}
