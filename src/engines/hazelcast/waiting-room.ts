import type { Clock } from '../../clock.js'
import {
  WAITER_TTL,
  type LockOperation,
  type LockRequest,
  type OutcomeOf,
  type RequestReport,
  type RequestStatus,
  type WaitTerms,
} from '../../engine/contract.js'
import { LockTable, type Effect } from '../../engine/lock-table.js'
import { KeyChanges, type EntryParts } from './key-changes.js'
import { OpenRoom } from './open-room.js'

/** The key of the entry with the sets that wait, in the map of the table. */
const ROOM_KEY = 'sets'
/** Stands for that entry in hints. No key is empty. */
export const ROOM = ''

/**
 * Where sets wait for other sets. Of two sets that have a common key, only one is granted here, and only then joins the
 * queues of its keys. So no two sets wait for each other in these queues, and all sets enter them in the same order.
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

  enter(request: LockRequest, terms: WaitTerms): Promise<RequestStatus> {
    return this.#decide({ type: 'enqueue', request: exclusively(request), ...short(terms) }, terms.lease)
  }

  checkIn(request: LockRequest, terms: WaitTerms): Promise<RequestStatus> {
    return this.#decide({ type: 'checkIn', request, ...short(terms) }, terms.lease)
  }

  async leave(request: LockRequest): Promise<void> {
    await this.#decide({ type: 'cancel', request })
  }

  /** Removes all requests of a session, and returns their IDs. */
  async revoke(session: string): Promise<string[]> {
    const ids = await this.#changes.change({
      run: state => state.requestsOf(session).map(({ id }) => id),
    })
    if (ids.length > 0) await this.#decide({ type: 'revoke', session })
    return ids
  }

  /** Drops sets that have expired, so that others are served. */
  async sweep(): Promise<void> {
    await this.#change((state, decide) => {
      const keys = Array.from(state.requests()).flatMap(({ claims }) => claims.map(({ key }) => key))
      decide({ type: 'sweepExpired', keys: [...new Set(keys)] })
    })
  }

  /** Another box has changed the entry. */
  changed(): void {
    this.#changes.changed(undefined)
  }

  /** The requests for each of their keys, as ones that wait. */
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
              age: now - since,
              expiresIn: expires - now,
            },
          })),
        ),
    })
  }

  #decide<O extends LockOperation>(operation: O, lease = 0): Promise<OutcomeOf<O>> {
    return this.#change((_, decide) => decide(operation), lease)
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

/** A set that is granted here has nothing yet, so it checks in as often as one that waits. */
function short({ lease, wait }: WaitTerms): WaitTerms {
  return { lease: Math.min(lease, WAITER_TTL), wait }
}

function exclusively(request: LockRequest): LockRequest {
  return { ...request, claims: request.claims.map(({ key }) => ({ key, mode: 'exclusive' })) }
}
