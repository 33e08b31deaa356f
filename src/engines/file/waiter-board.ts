import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import type { Clock } from '../../base/clock.js'

const PLACES = 256
/** Size of a place, in bytes. It has two 64-bit floats: since when its owner waits, and when the mark was last set. */
const PLACE_SIZE = 16
/** How long a mark counts after it was last set, in milliseconds. After that, its owner may be dead or stopped. */
const MAX_AGE = 10

/** The file of the marks of a database. */
export function marksOf(database: string): string {
  return `${database}-turns`
}

/**
 * The waiters for the write lock of a database, by age. SQLite's lock has no queue: the process that tries at the right
 * moment gets it, so under load one writer can starve. Waiters set a mark in a small file next to the database, and
 * writers read the marks before they try. Marks are hints: a wrong one only costs time, so they need no lock.
 */
export class WaiterBoard {
  readonly #descriptor: number
  readonly #place: number
  readonly #clock: Clock
  readonly #marks = new Float64Array((PLACES * PLACE_SIZE) / Float64Array.BYTES_PER_ELEMENT)
  readonly #own = new Float64Array(PLACE_SIZE / Float64Array.BYTES_PER_ELEMENT)

  private constructor(descriptor: number, place: number, clock: Clock) {
    this.#descriptor = descriptor
    this.#place = place
    this.#clock = clock
  }

  /** Opens the marks of a database. The clock must be the same in all processes of the machine. */
  static open(database: string, clock: Clock): WaiterBoard {
    const descriptor = openSync(marksOf(database), constants.O_RDWR | constants.O_CREAT, 0o600)
    // Processes that start together have neighbouring IDs, so each gets a place of its own. Sharing one is harmless.
    return new WaiterBoard(descriptor, (process.pid + threadId * 61) % PLACES, clock)
  }

  /** Marks this thread as waiting since this time. Must be repeated while it waits. */
  wait(since: number): void {
    this.#set(since, this.#clock.now())
  }

  /** Removes the mark. */
  leave(): void {
    this.#set(0, 0)
  }

  /** Returns the number of others that have waited for longer. @param since when this thread began to wait. */
  elders(since: number): number {
    const length = this.#read()
    const now = this.#clock.now()
    const places = Math.floor(length / PLACE_SIZE)
    let elders = 0
    for (let place = 0; place < places; place++) {
      const age = now - this.#marks[2 * place + 1]!
      // No waiter of this boot has written NaN, or a time in the future.
      if (place === this.#place || !(age >= 0 && age <= MAX_AGE)) continue
      const other = this.#marks[2 * place]!
      if (other < since || (other === since && place < this.#place)) elders++
    }
    return elders
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  /** Reads all marks. Returns the number of bytes read, 0 if the read fails. */
  #read(): number {
    try {
      return readSync(this.#descriptor, this.#marks, 0, PLACES * PLACE_SIZE, 0)
    } catch {
      return 0
    }
  }

  #set(since: number, setAt: number): void {
    this.#own[0] = since
    this.#own[1] = setAt
    try {
      writeSync(this.#descriptor, this.#own, 0, PLACE_SIZE, this.#place * PLACE_SIZE)
    } catch {
      // The disk is full. The others then don't know of this waiter.
    }
  }
}
