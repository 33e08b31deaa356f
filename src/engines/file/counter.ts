import type { Connection } from './driver.js'

/** The key of the row of `queues` that holds the counter: no lock has an empty key. */
const ROW = ''
/** How far the durable mark is kept ahead of the counter, and when it is moved. */
export const MARK_AHEAD = 2 ** 22
const MIN_MARK = 2 ** 21

/** The counter that gives grants their numbers and values their versions. */
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
    // A counter past its mark could be used again after a power cut; a mark this far ahead is durable long before.
    if (number + MIN_MARK > this.#mark) {
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

  /** Another process may have changed the counter, or this one's change was rolled back. */
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
