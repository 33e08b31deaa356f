import { MemoryState, coverTtl, type Clock, type Request } from 'signalbox/engine'
import { marked, textOfMark, type KeyEntry, type KeyRequest, type Mark } from './key-entry.js'
import type { EntryContext } from './open-entry.js'

/**
 * The sets that wait for others, as a state of the lock table. Each claims its keys exclusively here, regardless of its
 * actual claims, so that of two sets with a common key only one is granted. The state is stored in the format of a
 * key's entry.
 */
export class OpenRoom extends MemoryState {
  /** Whether an operation has changed anything. */
  isChanged = false
  readonly #entry: KeyEntry
  readonly #now: number
  readonly #renewed = new Set<Request>()
  readonly #before = new Map<Request, { readonly record: KeyRequest; readonly expires: number }>()

  constructor(_key: string, entry: KeyEntry, { sightings, signs }: EntryContext, clock: Clock) {
    super(entry.locks.number, clock)
    this.#entry = entry
    this.#now = clock.now()
    for (const each of entry.locks.requests) {
      const { id, session, phase, lease, number, label, set } = each
      // A set that was granted here does not hold its keys yet, so the signs of its box keep it like one that waits.
      const isCovered = phase !== 'reserved' && signs.isCovered(each)
      const signed = isCovered ? signs.seen(session) + coverTtl(lease) : -Infinity
      const expires = Math.max(sightings.expiry(each), signed)
      const claims = set && 'others' in set ? set.others : []
      const kept = phase === 'here' ? 'held' : phase
      const request = { id, session, claims, phase: kept, expires, lease, number, label, since: this.#now }
      super.append(request)
      this.#before.set(request, { record: each, expires })
    }
  }

  override append(request: Request): void {
    this.isChanged = true
    super.append(request)
  }

  override remove(request: Request): void {
    this.isChanged = true
    super.remove(request)
  }

  override changed(request: Request): void {
    this.isChanged = true
    this.#renewed.add(request)
  }

  /** Returns the changed entry, with this mark. */
  close(mark: Mark): KeyEntry {
    const { locks } = this.#entry
    const requests = Array.from(this.requests(), request => this.#recordOf(request, textOfMark(mark)))
    const number = Math.max(locks.number, ...requests.map(each => each.number))
    return {
      ...this.#entry,
      locks: { ...locks, turn: locks.turn + 1, number, marks: marked(locks.marks, mark), requests },
    }
  }

  #recordOf(request: Request, mark: string): KeyRequest {
    const { id, session, claims, phase, expires, lease, number, label } = request
    const before = this.#before.get(request)
    const isRenewed = this.#renewed.has(request) || before?.expires !== expires
    return {
      id,
      session,
      claim: { key: '', mode: 'exclusive' },
      phase,
      ttl: isRenewed || !before ? expires - this.#now : before.record.ttl,
      heartbeat: isRenewed || !before ? mark : before.record.heartbeat,
      lease,
      number,
      since: before?.record.since ?? Date.now(),
      label,
      set: { others: claims, overwritten: [] },
    }
  }
}
