import type { Request } from '../../engine/table-state.js'
import { UnavailableError } from '../../base/errors.js'
import type { Connection } from './driver.js'
import { entryOf, entryText, queueOf, queueText, type TicketedEntry } from './queue-text.js'

/** Maximum number of queues kept in memory between transactions. */
const MAX_KEPT = 4096
/** Maximum number of requests in the row of a key. The others are in its tail. */
const ROW_SIZE = 8
/** Number of requests of a tail that are read together. */
const PAGE = 32

/** The queue of a key: the requests that claim only this key. */
interface Queue {
  readonly key: string
  /** The requests in the row of the key. `flush` refills it from the tail, so it is empty only if the tail is, too. */
  readonly row: TicketedEntry[]
  /** Whether there may be requests in the tail. */
  hasTail: boolean
  /** The requests of the tail that were read or added, by ID. */
  readonly tail: Map<string, TicketedEntry>
}

/**
 * The requests that claim a single key. The first ones in the queue of a key share one row. Each of the others, the
 * tail of the queue, has a row of its own. Rows are read when they are needed, and stay in memory across transactions
 * until another process writes. Changes of a tail are written at once, others by `flush`. Finding, adding, changing or
 * removing a request costs O(log requests).
 */
export class NarrowRequests {
  readonly #sql: ReturnType<typeof statements>
  readonly #rowSize: number
  /** By key. The queue of a key without such requests is empty. */
  readonly #queues = new Map<string, Queue>()
  /** The queues whose rows have changed. */
  readonly #changed = new Set<Queue>()
  /** Whether no key has such requests; undefined if unknown. */
  #allFree: boolean | undefined

  constructor(connection: Connection, rowSize = ROW_SIZE) {
    this.#sql = statements(connection)
    this.#rowSize = rowSize
  }

  /** Makes later calls read the rows again, because another process may have written. */
  outdated(): void {
    this.#queues.clear()
    this.#allFree = undefined
  }

  /** Drops everything in memory, for example after a rollback. */
  forget(): void {
    this.outdated()
    this.#changed.clear()
  }

  /** Writes all changes. */
  flush(): void {
    for (const queue of this.#changed) {
      // Moves several requests at a time, so that most removals change only one row.
      if (queue.hasTail && queue.row.length <= this.#rowSize / 2) this.#refill(queue)
      if (queue.row.length === 0) this.#sql.delete.run(queue.key)
      else this.#sql.put.run(queue.key, queueText(queue.row), Number(queue.hasTail))
    }
    this.#changed.clear()
    if (this.#queues.size > MAX_KEPT) this.forget()
  }

  /** The entries for a key in order of arrival; undefined if there are none. */
  queue(key: string): Iterable<TicketedEntry> | undefined {
    const queue = this.#queue(key)
    if (queue.hasTail) return { [Symbol.iterator]: () => this.#entries(queue) }
    return queue.row.length > 0 ? queue.row : undefined
  }

  /** The last entries for a key with smaller tickets, the last one first. */
  lastBefore(ticket: number, key: string, count: number): TicketedEntry[] {
    const queue = this.#queue(key)
    const found = queue.hasTail
      ? this.#sql.before.all(key, ticket, count).map(row => this.#tailEntry(queue, row))
      : []
    const row = queue.row.filter(({ request }) => request.ticket < ticket)
    return [...found, ...row.reverse()].slice(0, count)
  }

  get(key: string, id: string): Request | undefined {
    const queue = this.#queue(key)
    const found = queue.row.find(({ request }) => request.id === id) ?? queue.tail.get(id)
    if (found || !queue.hasTail) return found?.request
    const row = this.#sql.byId.get(id, key)
    return row && this.#tailEntry(queue, row).request
  }

  append(request: Request, ticket: number): void {
    const claim = request.claims[0]!
    const queue = this.#queue(claim.key)
    const entry = { request: Object.assign(request, { ticket }), claim }
    this.#allFree = false
    if (queue.hasTail || queue.row.length >= this.#rowSize) {
      if (!queue.hasTail) this.#beginTail(queue)
      queue.tail.set(request.id, entry)
      this.#putTail(entry)
    } else {
      queue.row.push(entry)
      this.#changed.add(queue)
    }
  }

  prepend(request: Request, ticket: number): void {
    const claim = request.claims[0]!
    const queue = this.#queue(claim.key)
    queue.row.unshift({ request: Object.assign(request, { ticket }), claim })
    this.#allFree = false
    this.#changed.add(queue)
  }

  remove(request: Request): void {
    const queue = this.#queue(request.claims[0]!.key)
    const tailed = queue.tail.get(request.id)
    if (tailed) {
      queue.tail.delete(request.id)
      this.#sql.deleteFromTail.run(queue.key, tailed.request.ticket)
    } else {
      const place = queue.row.findIndex(entry => entry.request === request)
      queue.row.splice(place, 1)
      this.#changed.add(queue)
    }
  }

  changed(request: Request): void {
    const queue = this.#queue(request.claims[0]!.key)
    const tailed = queue.tail.get(request.id)
    if (tailed) this.#putTail(tailed)
    else this.#changed.add(queue)
  }

  /** The keys that begin with `prefix`. */
  keys(prefix: string): string[] {
    return this.#sql.keys.all(prefix, prefix).map(row => row[0] as string)
  }

  /** Returns the requests of a session, and some of other sessions. Skips queues that can't be read. */
  near(session: string): Request[] {
    // An entry is JSON, with the session in quotes. An entry of another session may have the same text as its label.
    const text = JSON.stringify(session)
    return this.#sql.keysWith.all(text, text).flatMap(([key]) => {
      try {
        return [...(this.queue(key as string) ?? [])].map(({ request }) => request)
      } catch (error) {
        if (error instanceof UnavailableError) return []
        throw error
      }
    })
  }

  #queue(key: string): Queue {
    let queue = this.#queues.get(key)
    if (!queue) {
      // If no request claims a single key, this saves a query for each key, for example of a request for a hundred
      // keys.
      this.#allFree ??= this.#sql.any.get() === undefined
      const row = this.#allFree ? undefined : this.#sql.get.get(key)
      queue = {
        key,
        row: row ? queueOf(key, row[0] as string) : [],
        hasTail: row?.[1] === 1,
        tail: new Map(),
      }
      this.#queues.set(key, queue)
    }
    return queue
  }

  #beginTail(queue: Queue): void {
    // A user may have deleted an unreadable row without its tail.
    this.#sql.deleteTailUpTo.run(queue.key, Number.MAX_SAFE_INTEGER)
    queue.hasTail = true
    this.#changed.add(queue)
  }

  /** Yields the entries of the row, and then those of the tail, which are read when they are needed. */
  *#entries(queue: Queue): Generator<TicketedEntry> {
    yield* queue.row
    let last = -1
    for (let size = PAGE; size === PAGE;) {
      const page = this.#sql.after.all(queue.key, last, PAGE).map(row => this.#tailEntry(queue, row))
      yield* page
      size = page.length
      last = page.at(-1)?.request.ticket ?? last
    }
  }

  /** Returns the entry of a row, always the same one. */
  #tailEntry(queue: Queue, row: readonly unknown[]): TicketedEntry {
    const [id, text] = row as [string, string]
    let entry = queue.tail.get(id)
    if (!entry) queue.tail.set(id, (entry = entryOf(queue.key, id, text)))
    return entry
  }

  #putTail(entry: TicketedEntry): void {
    const { id, ticket } = entry.request
    this.#sql.putTail.run(entry.claim.key, ticket, id, entryText(entry))
  }

  /** Moves the first requests of the tail into the row. */
  #refill(queue: Queue): void {
    const free = this.#rowSize - queue.row.length
    const moved = this.#sql.after.all(queue.key, -1, free).map(row => this.#tailEntry(queue, row))
    queue.hasTail = moved.length === free
    const last = moved.at(-1)
    if (!last) return
    this.#sql.deleteTailUpTo.run(queue.key, last.request.ticket)
    for (const entry of moved) queue.tail.delete(entry.request.id)
    queue.row.push(...moved)
  }
}

function statements(connection: Connection) {
  return {
    get: connection.prepare('select queue, has_tail from queues where key = ?'),
    any: connection.prepare(`select 1 from queues where key > '' limit 1`),
    put: connection.prepare(
      `insert into queues values (?, ?, ?)
       on conflict (key) do update set queue = excluded.queue, has_tail = excluded.has_tail`,
    ),
    delete: connection.prepare('delete from queues where key = ?'),
    keys: connection.prepare(
      `select key from queues where key > '' and substr(key, 1, length(?)) = ? order by key`,
    ),
    keysWith: connection.prepare(
      `select key from queues where key > '' and instr(queue, ?) > 0
       union select key from tails where instr(entry, ?) > 0`,
    ),
    after: connection.prepare(
      'select id, entry from tails where key = ? and ticket > ? order by ticket limit ?',
    ),
    before: connection.prepare(
      'select id, entry from tails where key = ? and ticket < ? order by ticket desc limit ?',
    ),
    byId: connection.prepare('select id, entry from tails where id = ? and key = ?'),
    putTail: connection.prepare(
      'insert into tails values (?, ?, ?, ?) on conflict (key, ticket) do update set entry = excluded.entry',
    ),
    deleteFromTail: connection.prepare('delete from tails where key = ? and ticket = ?'),
    deleteTailUpTo: connection.prepare('delete from tails where key = ? and ticket <= ?'),
  }
}
