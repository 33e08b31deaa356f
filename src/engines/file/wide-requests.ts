import { sharedClaims } from '../../engine/claim.js'
import type { Request } from '../../engine/table-state.js'
import type { Connection } from './driver.js'
import {
  claimsOf,
  claimsText,
  phaseOf,
  storedPhase,
  type StoredPhase,
  type TicketedEntry,
  type TicketedRequest,
} from './queue-text.js'

type Row = [
  id: string,
  ticket: number,
  session: string,
  phase: StoredPhase,
  expires: number,
  lease: number,
  number: number,
  label: string | null,
  since: number,
  downgraded: number,
]

/**
 * The requests for several keys. All of them are kept in memory, indexed by key, and read again after another process
 * has written. The fields of a request that can change are small, and read each time. Its claims are read only when it
 * is new or has been downgraded. Changes are written at once.
 */
export class WideRequests {
  readonly #sql: ReturnType<typeof statements>
  readonly #requests = new Map<string, TicketedRequest>()
  readonly #byKey = new Map<string, TicketedEntry[]>()
  #current = false

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  /** Makes later calls read the rows again, because another process may have written. */
  outdated(): void {
    this.#current = false
  }

  /** Drops everything in memory after a rollback. */
  forget(): void {
    this.#current = false
    this.#requests.clear()
    this.#byKey.clear()
  }

  all(): Iterable<TicketedRequest> {
    this.#read()
    return this.#requests.values()
  }

  /** To grant a reserved request, the others need not be read. */
  get(id: string): TicketedRequest | undefined {
    if (!this.#current) {
      const row = this.#sql.one.get(id)
      if (row) this.#take(row as unknown as Row)
      else this.#unindex(id)
    }
    return this.#requests.get(id)
  }

  /** The entries for a key in order of arrival; undefined when there are none. */
  queue(key: string): readonly TicketedEntry[] | undefined {
    this.#read()
    return this.#byKey.get(key)
  }

  /** The claimed keys. */
  keys(): Iterable<string> {
    this.#read()
    return this.#byKey.keys()
  }

  append(request: Request, ticket: number): void {
    this.#read()
    const wide = Object.assign(request, { ticket })
    const { id, session, expires, lease, number, label = null, since } = wide
    this.#sql.add.run(id, ticket, session, storedPhase(wide), expires, lease, number, label, since, 0)
    this.#sql.addClaims.run(id, claimsText(wide.claims))
    this.#index(wide)
  }

  remove({ id }: Request): void {
    this.#unindex(id)
    this.#sql.remove.run(id)
    this.#sql.removeClaims.run(id)
  }

  changed(request: Request): void {
    const { id, expires, lease, number } = request
    this.#sql.change.run(storedPhase(request), expires, lease, number, Number(isShared(request)), id)
  }

  #read(): void {
    if (this.#current) return
    this.#current = true
    const gone = new Set(this.#requests.keys())
    for (const row of this.#sql.all.all()) {
      this.#take(row as unknown as Row)
      gone.delete(row[0] as string)
    }
    for (const id of gone) this.#unindex(id)
  }

  #take([id, ticket, session, phase, expires, lease, number, label, since, downgraded]: Row): void {
    const state = { ...phaseOf(phase), expires, lease, number }
    const known = this.#requests.get(id)
    // Claims change only by a downgrade, which makes all of them shared.
    if (known && (downgraded === 0 || isShared(known))) {
      Object.assign(known, state)
      return
    }
    this.#unindex(id)
    const read = claimsOf(id, this.#sql.claims.get(id)![0] as string)
    const claims = downgraded ? sharedClaims(read) : read
    this.#index({ id, ticket, session, claims, ...state, label: label ?? undefined, since })
  }

  #index(request: TicketedRequest): void {
    this.#requests.set(request.id, request)
    for (const claim of request.claims) {
      const queue = this.#byKey.get(claim.key)
      if (!queue) this.#byKey.set(claim.key, [{ request, claim }])
      else {
        queue.push({ request, claim })
        if (queue.at(-2)!.request.ticket > request.ticket)
          queue.sort((a, b) => a.request.ticket - b.request.ticket)
      }
    }
  }

  #unindex(id: string): void {
    const request = this.#requests.get(id)
    this.#requests.delete(id)
    for (const { key } of request?.claims ?? []) {
      const left = this.#byKey.get(key)!.filter(entry => entry.request !== request)
      if (left.length === 0) this.#byKey.delete(key)
      else this.#byKey.set(key, left)
    }
  }
}

function isShared({ claims }: Request): boolean {
  return claims.every(({ mode }) => mode === 'shared')
}

function statements(connection: Connection) {
  const select =
    'select id, ticket, session, phase, expires, lease, number, label, since, downgraded from requests'
  return {
    all: connection.prepare(`${select} order by ticket`),
    one: connection.prepare(`${select} where id = ?`),
    claims: connection.prepare('select claims from claims where id = ?'),
    add: connection.prepare('insert into requests values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    addClaims: connection.prepare('insert into claims values (?, ?)'),
    change: connection.prepare(
      'update requests set phase = ?, expires = ?, lease = ?, number = ?, downgraded = ? where id = ?',
    ),
    remove: connection.prepare('delete from requests where id = ?'),
    removeClaims: connection.prepare('delete from claims where id = ?'),
  }
}
