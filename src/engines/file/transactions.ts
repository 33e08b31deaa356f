import type { Clock } from '../../clock.js'
import { ClosedError } from '../../errors.js'
import { SqliteError, type Connection } from './driver.js'
import type { Turnstile } from './turnstile.js'

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
/** How long a process may make one transaction after the other before it lets those go first who wait: milliseconds. */
const TURN = 1
/** How long the next in line looks again every SLICE, blocking, before it changes to timers of a millisecond. */
const EAGER = 10
const SLICE = 0.05
/** Flushes at the end of a tick without a turn of the event loop, so that a chain of awaits can't starve sockets. */
const TICKS = 8

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * The write transactions of one connection. Everything that one tick brings becomes one transaction, in the order of
 * the calls. The wait for the write lock, which other processes and threads want as well, is fair: who waits longest is
 * next, after a turn of at most a millisecond.
 */
export class Transactions {
  readonly #connection: Connection
  readonly #turnstile: Turnstile
  readonly #clock: Clock
  readonly #patience: number
  readonly #rolledBack: () => void
  #queue: Work[] = []
  #scheduled = false
  #ticks = 0
  #turnStart = -Infinity
  #closed = false
  #idle: (() => void) | undefined

  /**
   * @param patience how long to wait for the write lock before giving up, milliseconds. Only a process that was
   * stopped in the middle of a transaction holds it for long.
   * @param rolledBack is called after each transaction that was begun and came to nothing, before anything else is
   * done: what is remembered of it is wrong.
   */
  constructor(
    connection: Connection,
    turnstile: Turnstile,
    clock: Clock,
    patience: number,
    rolledBack: () => void,
  ) {
    this.#connection = connection
    this.#turnstile = turnstile
    this.#clock = clock
    this.#patience = patience
    this.#rolledBack = rolledBack
  }

  /**
   * Runs `work` inside a write transaction and resolves with its result once that is committed. `work` is synchronous
   * and has no effects outside the database: it runs again when another part of the transaction fails. What it throws
   * rejects this call alone, and nothing it wrote stays.
   * Rejects with SqliteError when SQLite fails, code `BUSY` when the lock was not to be had; then nothing was written.
   */
  run<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, false)
  }

  /** The same in a transaction of its own. */
  runAlone<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, true)
  }

  /** Refuses further work, and resolves when what was taken on is done. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#scheduled) await new Promise<void>(resolve => (this.#idle = resolve))
  }

  #enqueue<T>(run: () => T, alone: boolean): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError('The database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, alone, resolve: resolve as (value: unknown) => void, reject })
      if (!this.#scheduled) this.#schedule()
    })
  }

  #schedule(): void {
    this.#scheduled = true
    if (++this.#ticks >= TICKS) {
      this.#ticks = 0
      setImmediate(() => this.#flush())
    } else {
      // A microtask that queues a tick runs after all promise reactions of this tick, whatever called us.
      queueMicrotask(() => process.nextTick(() => this.#flush()))
    }
  }

  #flush(): void {
    let begun = false
    try {
      begun = this.#mayBegin() && this.#connection.begin()
    } catch (error) {
      this.#refuse(error)
    }
    if (begun) this.#turn()
    else if (this.#queue.length > 0) void this.#wait()
    else this.#finish()
  }

  /** Looks for waiters when a turn is over, or was long ago; then a new turn starts if there are none. */
  #mayBegin(): boolean {
    const now = this.#clock.now()
    if (now - this.#turnStart < TURN) return true
    if (this.#turnstile.elders(now) > 0) return false
    this.#turnStart = now
    return true
  }

  async #wait(): Promise<void> {
    const since = this.#clock.now()
    let eager = Infinity
    try {
      for (;;) {
        this.#turnstile.wait(since)
        const elders = this.#turnstile.elders(since)
        const now = this.#clock.now()
        if (elders === 0 && this.#connection.begin()) break
        if (elders <= 1) eager = Math.min(eager, now + EAGER)
        if (now - since > this.#patience)
          throw new SqliteError('the write lock was not to be had', 5, undefined)
        // Sleeping in short slices gives up the processor, unlike a loop, and wakes sooner than a timer would.
        if (elders <= 1 && now < eager) {
          Atomics.wait(sleeper, 0, 0, SLICE)
          await new Promise(resolve => setImmediate(resolve))
        } else {
          await new Promise(resolve => setTimeout(resolve, 1))
        }
      }
    } catch (error) {
      this.#turnstile.leave()
      this.#refuse(error)
      this.#finish()
      return
    }
    this.#turnstile.leave()
    this.#turnStart = this.#clock.now()
    this.#turn()
  }

  /** Does queued work in the transaction that was just begun, and commits. */
  #turn(): void {
    const done: Done[] = []
    try {
      if (this.#work(done)) this.#connection.exec('commit')
    } catch (error) {
      this.#rollBack()
      for (const { work } of done) work.reject(error)
      done.length = 0
    }
    for (const { work, value } of done) work.resolve(value)
    this.#finish()
  }

  /** Works the queue off until it is empty or time is up; false when that failed and was rolled back. */
  #work(done: Done[]): boolean {
    const until = this.#clock.now() + BATCH
    const queue = this.#queue
    let next = 0
    do {
      const work = queue[next++]!
      try {
        done.push({ work, value: work.run() })
      } catch (error) {
        // Only a rollback takes back what it wrote, so the work before it has to be done again.
        this.#rollBack()
        this.#queue = [...done.map(entry => entry.work), ...queue.slice(next)]
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
    this.#queue = queue.slice(next)
    return true
  }

  #rollBack(): void {
    try {
      this.#connection.exec('rollback')
    } catch {
      // SQLite has rolled back itself, as it does when the disk is full.
    }
    this.#rolledBack()
  }

  #refuse(error: unknown): void {
    const refused = this.#queue
    this.#queue = []
    for (const work of refused) work.reject(error)
  }

  #finish(): void {
    this.#scheduled = false
    if (this.#queue.length > 0) this.#schedule()
    else this.#idle?.()
  }
}
