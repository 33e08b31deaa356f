import {
  LockTable,
  WAITER_TTL,
  type CheckIn,
  type Clock,
  type Effect,
  type Enqueue,
  type LockOperation,
  type LockRequest,
  type OutcomeOf,
  type RequestReport,
  type RequestStatus,
  type WaitTerms,
} from 'signalbox/engine'
import { KeyChanges, type EntryParts } from './key-changes.js'
import { OpenRoom } from './open-room.js'

/** The key of the entry with the sets that wait, in the map of the table. */
const ROOM_KEY = 'sets'
/** Stands for that entry in hints. No key is empty. */
export const ROOM = ''

/** The reply of the waiting room to a set. */
export interface InRoom {
  readonly status: RequestStatus
  /** Its keys for which other sets wait here. */
  readonly wanted: ReadonlySet<string>
}

/**
 * The place where sets wait for other sets. Of two sets that have a common key, only one is granted here, and only then
 * joins the queues of its keys. So no two sets wait for each other in these queues, and all sets enter them in the same
 * order.
 */
export class WaitingRoom {
  readonly #changes: KeyChanges<OpenRoom>
  readonly #clock: Clock
  readonly #notify: (effects: readonly Effect[]) => void

  constructor(parts: EntryParts, notify: (effects: readonly Effect[]) => void) {
    this.#changes = new KeyChanges(ROOM_KEY, OpenRoom, parts)
    this.#clock = parts.clock
    this.#notify = notify
  }

  enter(request: LockRequest, terms: WaitTerms): Promise<InRoom> {
    return this.#inRoom({ type: 'enqueue', request: exclusively(request), ...short(terms) })
  }

  checkIn(request: LockRequest, terms: WaitTerms): Promise<InRoom> {
    return this.#inRoom({ type: 'checkIn', request, ...short(terms) })
  }

  /** Returns the keys of the set for which other sets wait here. */
  leave(request: LockRequest): Promise<ReadonlySet<string>> {
    return this.#change((state, decide) => {
      decide({ type: 'cancel', request })
      return this.#wanted(state, request)
    })
  }

  /** Returns the sessions of the other sets that wait here for keys of a set. */
  rivals(request: LockRequest): Promise<readonly string[]> {
    return this.#change(state => this.#rivals(state, request).map(({ session }) => session))
  }

  /** Removes all requests of a session, and returns their IDs. */
  async revoke(session: string): Promise<string[]> {
    const ids = await this.#changes.change({
      run: state => state.requestsOf(session).map(({ id }) => id),
    })
    if (ids.length > 0) await this.#decide({ type: 'revoke', session })
    return ids
  }

  /** Drops sets that have expired, so that others get their turn. */
  async sweep(): Promise<void> {
    await this.#change((state, decide) => {
      const keys = Array.from(state.requests()).flatMap(({ claims }) => claims.map(({ key }) => key))
      decide({ type: 'sweepExpired', keys: [...new Set(keys)] })
    })
  }

  /** Call when another box has changed the entry. */
  changed(): void {
    this.#changes.changed(undefined)
  }

  /** Returns a report of each set for each of its keys, as a waiting request. */
  reports(): Promise<readonly { readonly id: string; readonly report: RequestReport }[]> {
    const now = this.#clock.now()
    return this.#changes.change({
      run: state =>
        Array.from(state.requests()).flatMap(({ id, session, claims, label, expires, since }) =>
          claims.map(claim => ({
            id,
            report: {
              key: claim.key,
              session,
              host: '',
              pid: 0,
              label,
              claim,
              phase: 'waiting' as const,
              number: 0,
              age: Math.max(0, now - since),
              expiresIn: expires - now,
            },
          })),
        ),
    })
  }

  #decide<O extends LockOperation>(operation: O): Promise<OutcomeOf<O>> {
    return this.#change((_, decide) => decide(operation))
  }

  #inRoom(operation: Enqueue | CheckIn): Promise<InRoom> {
    const { request, lease } = operation
    return this.#change(
      (state, decide) => ({ status: decide(operation), wanted: this.#wanted(state, request) }),
      lease,
    )
  }

  #wanted(state: OpenRoom, request: LockRequest): ReadonlySet<string> {
    return new Set(this.#rivals(state, request).map(({ key }) => key))
  }

  /** Returns the other sets that wait here for each key of a set. */
  #rivals(state: OpenRoom, { id, claims }: LockRequest): { key: string; session: string }[] {
    const now = this.#clock.now()
    return claims.flatMap(({ key }) =>
      [...(state.queue(key) ?? [])]
        .filter(({ request }) => request.id !== id && request.expires > now)
        .map(({ request }) => ({ key, session: request.session })),
    )
  }

  async #change<T>(
    work: (state: OpenRoom, decide: <O extends LockOperation>(operation: O) => OutcomeOf<O>) => T,
    lease = 0,
  ): Promise<T> {
    let effects: Effect[] = []
    const outcome = await this.#changes.change({
      lease,
      run: state => {
        effects = []
        const table = new LockTable(state, effect => effects.push(effect))
        return work(state, operation => table.decide(operation, this.#clock.now()))
      },
    })
    if (effects.length > 0) this.#notify(effects)
    return outcome
  }
}

/** A set that is granted here does not hold its keys yet, so it checks in as often as one that waits. */
function short({ lease, wait }: WaitTerms): WaitTerms {
  return { lease: Math.min(lease, WAITER_TTL), wait }
}

function exclusively(request: LockRequest): LockRequest {
  return { ...request, claims: request.claims.map(({ key }) => ({ key, mode: 'exclusive' })) }
}
