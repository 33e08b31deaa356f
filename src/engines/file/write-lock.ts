import type { Clock } from '../../base/clock.js'
import { SqliteError, type Connection } from './driver.js'
import type { WaiterBoard } from './waiter-board.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

/** How long a process may run transactions in a row before waiters go first, in milliseconds. */
const TURN = 1
/**
 * How long the next in line retries every SLICE, blocking its thread, before it uses timers of 1 ms. In milliseconds.
 */
const EAGER = 10
const SLICE = 0.05

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * The write lock of a database, fair among all processes and threads: the one that has waited longest is next, after a
 * turn of at most a millisecond.
 */
export class WriteLock {
  readonly #connection: Pick<Connection, 'begin'>
  readonly #board: Pick<WaiterBoard, 'elders' | 'leave' | 'wait'>
  readonly #clock: Clock
  readonly #patience: number
  #turnStart = -Infinity

  /**
   * @param patience how long to wait before giving up, in milliseconds. Only a process that was stopped in the middle
   * of a transaction holds the lock for long.
   */
  constructor(
    connection: Pick<Connection, 'begin'>,
    board: Pick<WaiterBoard, 'elders' | 'leave' | 'wait'>,
    clock: Clock,
    patience: number,
  ) {
    this.#connection = connection
    this.#board = board
    this.#clock = clock
    this.#patience = patience
  }

  /** Begins a transaction if the lock is free and no other process must go first; returns whether it did. */
  tryBegin(): boolean {
    const now = this.#clock.now()
    if (now - this.#turnStart >= TURN) {
      // mutant: turn-despite-elders
      if (this.#board.elders(now) > 0) return false
      this.#turnStart = now
    }
    return this.#connection.begin()
  }

  /** Waits for its turn, and begins a transaction. Rejects with SqliteError `BUSY` when that takes too long. */
  async begin(): Promise<void> {
    try {
      await this.#wait()
    } finally {
      this.#board.leave()
    }
    this.#turnStart = this.#clock.now()
  }

  async #wait(): Promise<void> {
    const since = this.#clock.now()
    let eager = Infinity
    for (;;) {
      this.#board.wait(since)
      const elders = this.#board.elders(since)
      const now = this.#clock.now()
      // mutant: elders-ignored
      if (elders === 0 && this.#connection.begin()) return
      if (elders <= 1) eager = Math.min(eager, now + EAGER)
      if (now - since > this.#patience)
        throw new SqliteError(`timed out after ${this.#patience} ms waiting for the write lock`, 5, undefined)
      // Sleeping in short slices gives up the processor, unlike a loop, and wakes sooner than a timer would.
      if (elders <= 1 && now < eager) {
        Atomics.wait(sleeper, 0, 0, SLICE)
        await new Promise(resolve => runtimeTimers.setImmediate(resolve))
      } else {
        await new Promise(resolve => runtimeTimers.setTimeout(resolve, 1))
      }
    }
  }
}
