import type { Connection } from './driver.js'

/** The key of the row of `queues` that holds the counter: no lock has an empty key. */
const ROW = ''
/** How far the mark is set ahead of the counter, and the distance below which it is set again. */
export const MARK_AHEAD = 2 ** 22
const MIN_AHEAD = 2 ** 21

/** The counter for the numbers of grants and the versions of values. */
export class Counter {
  readonly #sql: ReturnType<typeof statements>
  #counter: number | undefined
  #hasChanged = false
  #mark = 0

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  next(): number {
    const number = this.#read() + 1
    // After a power failure, numbers above the last durable mark could be used again. A mark this far ahead is durable
    // long before the counter reaches it.
    if (number + MIN_AHEAD > this.#mark) {
      this.#mark = number + MARK_AHEAD
      this.#sql.putMark.run(this.#mark)
    }
    this.#counter = number
    this.#hasChanged = true
    return number
  }

  flush(): void {
    if (this.#hasChanged) this.#sql.put.run(String(this.#counter), ROW)
    this.#hasChanged = false
  }

  /** Drops the counter in memory: another process may have changed it, or a change of this one was rolled back. */
  forget(): void {
    this.#counter = undefined
    this.#hasChanged = false
  }

  #read(): number {
    if (this.#counter === undefined) {
      this.#mark = this.#sql.mark.get()![0] as number
      this.#counter = Number(this.#sql.get.get(ROW)![0])
    }
    return this.#counter
  }
}

function statements(connection: Connection) {
  return {
    get: connection.prepare('select queue from queues where key = ?'),
    put: connection.prepare('update queues set queue = ? where key = ?'),
    mark: connection.prepare('select mark from machine'),
    putMark: connection.prepare('update machine set mark = ?'),
  }
}
