import type { Claim } from '../../engine/claim.js'
import type { Request } from '../../engine/lock-table.js'
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

/** A request for several keys. */
interface WideRequest extends TicketedRequest {
  claims: readonly Claim[]
  downgraded: boolean
}

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
const COLUMNS = 'id, ticket, session, phase, expires, lease, number, label, since, downgraded'

/**
 * The requests for several keys. All of them are kept in memory, indexed by key, and read again after another process
 * has written. The fields of a request that can change are small, and read each time. Its claims are read only when it
 * is new or has been downgraded.
 */
export class WideRequests {
  readonly #sql: ReturnType<typeof statements>
  readonly #requests = new Map<string, WideRequest>()
  readonly #byKey = new Map<string, TicketedEntry[]>()
  readonly #added = new Set<WideRequest>()
  readonly #changed = new Set<WideRequest>()
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
    this.#added.clear()
    this.#changed.clear()
  }

  /** Writes all changes. */
  flush(): void {
    for (const wide of this.#added) {
      const { id, ticket, session, expires, lease, number, label, since } = wide
      this.#sql.add.run(
        id,
        ticket,
        session,
        storedPhase(wide),
        expires,
        lease,
        number,
        label ?? null,
        since,
        0,
      )
      this.#sql.addClaims.run(id, claimsText(wide.claims))
    }
    for (const wide of this.#changed) {
      const { id, expires, lease, number, downgraded } = wide
      if (!this.#added.has(wide))
        this.#sql.change.run(storedPhase(wide), expires, lease, number, Number(downgraded), id)
    }
    this.#added.clear()
    this.#changed.clear()
  }

  all(): Iterable<TicketedRequest> {
    this.#read()
    return this.#requests.values()
  }

  get(id: string): TicketedRequest | undefined {
    if (!this.#current) this.#readOne(id)
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
    const wide = Object.assign(request, { ticket, downgraded: false })
    this.#added.add(wide)
    this.#index(wide)
  }

  remove(request: Request): void {
    const wide = this.#requests.get(request.id)!
    this.#unindex(wide)
    if (this.#added.delete(wide)) return
    this.#sql.remove.run(wide.id)
    this.#sql.removeClaims.run(wide.id)
  }

  changed(request: Request): void {
    const wide = this.#requests.get(request.id)!
    // Claims change only by a downgrade, which makes all of them shared.
    wide.downgraded = wide.claims.every(claim => claim.mode === 'shared')
    this.#changed.add(wide)
  }

  /** Reads the fields of one request that can change. To grant a reserved request, the others need not be read. */
  #readOne(id: string): void {
    const known = this.#requests.get(id)
    const row = this.#sql.one.get(id) as unknown as Row | undefined
    if (known && row && known.downgraded === Boolean(row[9])) this.#update(known, row)
    else this.#read()
  }

  #update(known: WideRequest, [, , , phase, expires, lease, number]: Row): void {
    Object.assign(known, phaseOf(phase))
    known.expires = expires
    known.lease = lease
    known.number = number
  }

  #read(): void {
    if (this.#current) return
    this.#current = true
    const gone = new Set(this.#requests.keys())
    for (const row of this.#sql.all.all()) {
      const [id, ticket, session, phase, expires, lease, number, label, since, downgraded] =
        row as unknown as Row
      gone.delete(id)
      const known = this.#requests.get(id)
      // A change by this operation is newer than the row.
      if (known && this.#changed.has(known)) continue
      if (known && known.downgraded === Boolean(downgraded)) {
        this.#update(known, row as unknown as Row)
        continue
      }
      if (known) this.#unindex(known)
      const read = claimsOf(id, this.#sql.claims.get(id)![0] as string)
      const claims = downgraded ? read.map(({ key }): Claim => ({ key, mode: 'shared' })) : read
      const state = { ...phaseOf(phase), expires, lease, number, downgraded: Boolean(downgraded) }
      this.#index({ id, ticket, session, claims, ...state, label: label ?? undefined, since })
    }
    for (const id of gone) this.#unindex(this.#requests.get(id)!)
  }

  #index(request: WideRequest): void {
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

  #unindex(request: WideRequest): void {
    this.#requests.delete(request.id)
    this.#changed.delete(request)
    for (const { key } of request.claims) {
      const queue = this.#byKey.get(key)!
      if (queue.length === 1) this.#byKey.delete(key)
      else
        queue.splice(
          queue.findIndex(entry => entry.request === request),
          1,
        )
    }
  }
}

function statements(connection: Connection) {
  return {
    all: connection.prepare(`select ${COLUMNS} from requests order by ticket`),
    one: connection.prepare(`select ${COLUMNS} from requests where id = ?`),
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
