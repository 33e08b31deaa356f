import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'

/** The state of a writer, which survives its kill. Times are in milliseconds. */
export interface Mark {
  /** Start of its wait for the database: clock time, or 0 if it does not wait. */
  since: number
  /** Its longest wait for the database. */
  longestWait: number
  /** The longest wait without the time for which it, or the process that had the database, had no processor. */
  longestLockWait: number
  /** Total time for which it had the database and no processor. */
  starvedInside: number
  transactions: number
}

const FIELDS = ['since', 'longestWait', 'longestLockWait', 'starvedInside', 'transactions'] as const
const SIZE = FIELDS.length * Float64Array.BYTES_PER_ELEMENT

/** A file with a mark for each writer. */
export class Marks {
  readonly #descriptor: number
  readonly #own = new Float64Array(FIELDS.length)
  readonly #all: Float64Array

  constructor(
    path: string,
    readonly writers: number,
  ) {
    this.#descriptor = openSync(path, 'r+')
    this.#all = new Float64Array(FIELDS.length * writers)
  }

  static create(path: string, writers: number): Marks {
    writeFileSync(path, Buffer.alloc(SIZE * writers))
    return new Marks(path, writers)
  }

  set(writer: number, mark: Mark): void {
    FIELDS.forEach((field, index) => (this.#own[index] = mark[field]))
    writeSync(this.#descriptor, this.#own, 0, SIZE, writer * SIZE)
  }

  get(writer: number): Mark {
    readSync(this.#descriptor, this.#all, 0, SIZE * this.writers, 0)
    const at = writer * FIELDS.length
    return Object.fromEntries(
      FIELDS.map((field, index) => [field, this.#all[at + index]!]),
    ) as unknown as Mark
  }

  /** Returns the total time for which other writers had the database and no processor, in milliseconds. */
  starvedOthers(writer: number): number {
    readSync(this.#descriptor, this.#all, 0, SIZE * this.writers, 0)
    let sum = 0
    const field = FIELDS.indexOf('starvedInside')
    for (let other = 0; other < this.writers; other++) {
      if (other !== writer) sum += this.#all[other * FIELDS.length + field]!
    }
    return sum
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
