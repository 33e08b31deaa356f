/** A row as it was last seen. */
export interface Row {
  readonly name: string
  id: number
  version: number
  data: string
}

/** So many rows are kept in memory from one change to the next. */
const MOST_KEPT = 4096

/**
 * The rows that were seen lately, as they were then. They may be out of date: each change compares the versions of all
 * rows that it was decided by.
 */
export class Rows {
  readonly #byName = new Map<string, Row>()
  readonly #byId = new Map<number, Row>()

  get(name: string): Row | undefined {
    return this.#byName.get(name)
  }

  /** Takes on what was read. */
  seen(name: string, id: number, version: number, data: string): Row {
    this.forget(name)
    const row = { name, id, version, data }
    this.#byName.set(name, row)
    this.#byId.set(id, row)
    return row
  }

  /** Takes on what a row that is known has become: undefined when it is gone. */
  changed(id: number, version: number | null, data: string | null): void {
    const row = this.#byId.get(id)
    if (!row) return
    if (version === null || data === null) this.forget(row.name)
    else Object.assign(row, { version, data })
  }

  /** Takes on what another box has made of a row, unless something newer is known. */
  told(id: number, version: number, data: string): void {
    const row = this.#byId.get(id)
    if (row && version > row.version) Object.assign(row, { version, data })
  }

  /** A row has another number. */
  moved(from: number, to: number): void {
    const row = this.#byId.get(from)
    if (!row) return
    this.#byId.delete(from)
    row.id = to
    this.#byId.set(to, row)
  }

  forget(name: string): void {
    const row = this.#byName.get(name)
    if (!row) return
    this.#byName.delete(name)
    this.#byId.delete(row.id)
  }

  /** Forgets all rows whose names begin so. */
  forgetAll(prefix: string): void {
    for (const name of [...this.#byName.keys()]) if (name.startsWith(prefix)) this.forget(name)
  }

  /** Forgets all rows when they are too many. */
  trim(): void {
    if (this.#byName.size <= MOST_KEPT) return
    this.#byName.clear()
    this.#byId.clear()
  }

  names(): Iterable<string> {
    return this.#byName.keys()
  }
}
