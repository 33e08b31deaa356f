import type { Clock, Timer } from '../../clock.js'
import type { Claim } from '../../engine/claim.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** What another box's change of the record did to the requests of this box. */
interface Changes {
  readonly lost: readonly string[]
  readonly woken: readonly string[]
}

/** The requests of this box, as in the newest record. */
export class OwnRequests {
  readonly #clock: Clock
  readonly #contended: (id: string) => void
  #session: string | undefined
  #own = new Map<string, RequestRecord>()
  /** How many requests of any box claim each key. */
  #claims: ReadonlyMap<string, number> = new Map()
  /** For each uncontended grant, the timer that ends the time for which its box relies on being notified. */
  readonly #uncontended = new Map<string, Timer>()

  /** @param contended see {@link watchUncontended}. */
  constructor(clock: Clock, contended: (id: string) => void) {
    this.#clock = clock
    this.#contended = contended
  }

  /** Follows the requests of this session from now on. */
  join(session: string): void {
    this.#session = session
  }

  /** Applies a newer record, and returns what has changed. */
  follow({ requests }: TableRecord): Changes {
    const before = this.#own
    this.#own = new Map(requests.filter(each => each.session === this.#session).map(each => [each.id, each]))
    const claims = new Map<string, number>()
    for (const { key } of requests.flatMap(each => each.claims)) claims.set(key, (claims.get(key) ?? 0) + 1)
    this.#claims = claims
    // The box is notified again at the end of that time, because it ignores a notice before it has the grant.
    for (const id of this.#uncontended.keys()) if (!this.#isUncontended(id)) this.#contended(id)
    const lost = [...before.keys()].filter(id => !this.#own.has(id))
    const woken = [...before.values()].filter(
      ({ id, phase }) => phase === 'waiting' && this.#own.get(id)?.phase === 'reserved',
    )
    return { lost, woken: woken.map(({ id }) => id) }
  }

  get(id: string): RequestRecord | undefined {
    return this.#own.get(id)
  }

  /** Whether no request of any box claims one of these keys. */
  areFree(keys: readonly string[]): boolean {
    return !keys.some(key => this.#claims.has(key))
  }

  /**
   * Watches a grant that excludes all others, if no other request claims any of its keys. Calls `contended` as soon as
   * one does, or after this many milliseconds. Returns false if the grant is contended already.
   */
  watchUncontended(id: string, time: number): boolean {
    this.#uncontended.get(id)?.cancel()
    this.#uncontended.delete(id)
    if (!this.#isUncontended(id)) return false
    const over = (): void => {
      this.#uncontended.delete(id)
      this.#contended(id)
    }
    this.#uncontended.set(id, this.#clock.after(time, over, false))
    return true
  }

  stop(): void {
    for (const timer of this.#uncontended.values()) timer.cancel()
  }

  #isUncontended(id: string): boolean {
    const claims = this.#own.get(id)?.claims
    return claims?.every(({ key, mode }) => mode === 'exclusive' && this.#claims.get(key) === 1) ?? false
  }
}

/** The keys that a request claims exclusively. */
export function exclusiveKeys(claims: readonly Claim[]): readonly string[] {
  return claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
}
