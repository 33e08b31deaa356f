import type { Request } from '../../engine/lock-table.js'
import type { Connection } from './driver.js'
import { queueOf, queueText, type NarrowEntry, type NarrowRequest, type TicketedEntry } from './queue-text.js'

/** Maximum number of queues kept in memory between transactions. */
const MAX_KEPT = 4096

/**
 * The requests for one key: a row for each key with all of them, read when the key is asked for. They are kept in
 * memory from one transaction to the next for as long as no other process has written.
 */
export class NarrowRequests {
  readonly #sql: ReturnType<typeof statements>
  /** By key; empty for a key that is known to have no such request. */
  #queues = new Map<string, NarrowEntry[]>()
  /** What the queues were before another process has written. */
  #outdated: ReadonlyMap<string, NarrowEntry[]> = new Map()
  readonly #changed = new Set<string>()
  /** Whether no key has such requests; undefined when that is not known. */
  #allFree: boolean | undefined

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  /** Another process may have written: rows that are asked for must be read again. */
  outdated(): void {
    this.#outdated = this.#queues
    this.#queues = new Map()
    this.#allFree = undefined
  }

  /** Forgets all: after a transaction that was rolled back. */
  forget(): void {
    this.outdated()
    this.#outdated = new Map()
    this.#changed.clear()
  }

  /** Writes what has changed. */
  flush(): void {
    for (const key of this.#changed) {
      const queue = this.#queues.get(key)!
      if (queue.length > 0) this.#sql.put.run(key, queueText(queue))
      else this.#sql.delete.run(key)
    }
    this.#changed.clear()
    if (this.#queues.size > MAX_KEPT) this.forget()
  }

  /** The entries for a key in order of arrival. */
  queue(key: string): readonly TicketedEntry[] {
    return this.#queue(key)
  }

  get(key: string, id: string): Request | undefined {
    return this.#queue(key).find(({ request }) => request.id === id)?.request
  }

  append(request: Request, ticket: number): void {
    const claim = request.claims[0]!
    const queue = this.#queue(claim.key)
    queue.push({ request: Object.assign(request, { ticket, text: undefined }), claim })
    if (queue.length > 1 && queue.at(-2)!.request.ticket > ticket) queue.unshift(queue.pop()!)
    this.#allFree = false
    this.#changed.add(claim.key)
  }

  remove(request: Request): void {
    const { key } = request.claims[0]!
    const queue = this.#queue(key)
    queue.splice(
      queue.findIndex(entry => entry.request === request),
      1,
    )
    this.#changed.add(key)
  }

  changed(request: Request): void {
    ;(request as NarrowRequest).text = undefined
    this.#changed.add(request.claims[0]!.key)
  }

  /** The keys that begin with `prefix`. */
  keys(prefix: string): string[] {
    return this.#sql.keys.all(prefix, prefix).map(row => row[0] as string)
  }

  /** The requests of a session, and some of others. */
  near(session: string): Request[] {
    // A queue is JSON, so a session stands there in quotes. Another one may have it in a label.
    const keys = this.#sql.keysWith.all(JSON.stringify(session))
    return keys.flatMap(([key]) => this.#queue(key as string).map(({ request }) => request))
  }

  #queue(key: string): NarrowEntry[] {
    let queue = this.#queues.get(key)
    if (!queue) {
      // Where no request is for one key alone, a hundred keys need not be looked up one by one.
      this.#allFree ??= this.#sql.any.get() === undefined
      const row = this.#allFree ? undefined : this.#sql.get.get(key)
      queue = row ? queueOf(key, row[0] as string, this.#outdated.get(key)) : []
      this.#queues.set(key, queue)
    }
    return queue
  }
}

function statements(connection: Connection) {
  return {
    get: connection.prepare('select queue from queues where key = ?'),
    any: connection.prepare(`select 1 from queues where key > '' limit 1`),
    put: connection.prepare(
      'insert into queues values (?, ?) on conflict (key) do update set queue = excluded.queue',
    ),
    delete: connection.prepare('delete from queues where key = ?'),
    keys: connection.prepare(
      `select key from queues where key > '' and substr(key, 1, length(?)) = ? order by key`,
    ),
    keysWith: connection.prepare(`select key from queues where key > '' and instr(queue, ?) > 0`),
  }
}
