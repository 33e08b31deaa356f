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
  /** The result, once it has run in a transaction that is not committed yet. */
  value?: unknown
}

/** How long one transaction accepts further work, in milliseconds. */
const BATCH = 2
/**
 * Transactions begin at the end of a tick. One in this number first lets the event loop turn, so that sockets don't
 * starve.
 */
const TICKS = 8

/**
 * The write transactions of one connection. All work of one tick becomes one transaction, in the order of the calls.
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
   * @param rolledBack is called directly after each rollback, to drop state in memory that depends on the transaction.
   */
  constructor(connection: Connection, lock: WriteLock, clock: Clock, rolledBack: () => void) {
    this.#connection = connection
    this.#lock = lock
    this.#clock = clock
    this.#rolledBack = rolledBack
  }

  /**
   * Runs `work` inside a write transaction, and resolves with its result after the commit. `work` must be synchronous
   * and have no effects outside the database, because it runs again when other work in the transaction throws. If
   * `work` throws, only this call rejects, and its writes are rolled back.
   *
   * Rejects with SqliteError when SQLite fails and nothing was written, with the code `BUSY` when it timed out waiting
   * for the lock. Rejects with UnclearCommitError when the commit may have been applied.
   */
  run<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, false)
  }

  /** Like `run`, in a transaction of its own. */
  runAlone<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, true)
  }

  /** Rejects further work, and resolves when all queued work is done. */
  close(): Promise<void> {
    this.#closed = true
    return this.#queue.idle()
  }

  #enqueue<T>(run: () => T, alone: boolean): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError('the database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.add({ run, alone, resolve: resolve as (value: unknown) => void, reject })
    })
  }

  #defer(run: () => void): void {
    if (++this.#ticks < TICKS) return endOfTick(run)
    this.#ticks = 0
    runtimeTimers.setImmediate(run)
  }

  /** Runs the next transaction, or rejects all queued work when it can't begin. */
  #next(): Awaitable<void> {
    try {
      if (this.#lock.tryBegin()) return this.#transact()
    } catch (error) {
      return this.#rejectAll(error)
    }
    return this.#lock.begin().then(
      () => this.#transact(),
      (error: unknown) => this.#rejectAll(error),
    )
  }

  /** Runs queued work in the transaction that has just begun, and commits. */
  #transact(): void {
    const done: Work[] = []
    try {
      if (this.#work(done)) this.#connection.exec('commit')
    } catch (error) {
      this.#rollBack()
      const failure = isUnclear(error)
        ? new UnclearCommitError((error as Error).message, { cause: error })
        : error
      for (const work of done) work.reject(failure)
      return
    }
    for (const work of done) work.resolve(work.value)
  }

  /**
   * Runs queued work until the queue is empty, time is up, or work must run alone. Returns false if work threw and the
   * transaction was rolled back.
   */
  #work(done: Work[]): boolean {
    const until = this.#clock.now() + BATCH
    const queue = this.#queue.take()
    let next = 0
    do {
      const work = queue[next++]!
      try {
        work.value = work.run()
        done.push(work)
      } catch (error) {
        // Only a rollback undoes its writes. That also undoes the work before it, which must run again.
        this.#rollBack()
        this.#queue.putBack([...done, ...queue.slice(next)])
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

  #rejectAll(error: unknown): void {
    for (const work of this.#queue.take()) work.reject(error)
  }
}

/**
 * Whether a failed commit may still be applied. SQLite ends a commit by writing its last page to the log. If a write
 * fails, that page is incomplete, and all processes ignore the transaction. A failure after that write, for example in
 * the index of the log, leaves a complete transaction, which the next process that recovers the log applies.
 */
function isUnclear(error: unknown): boolean {
  if (!(error instanceof SqliteError)) return false
  return !['BUSY', 'FULL'].includes(error.code) && error.extended !== WRITE_FAILED
}
