import type { Clock, Timer } from '../../clock.js'
import type { Claim } from '../../engine/claim.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** What another box's change of the record did to the requests of this box. */
interface Changes {
  readonly lost: readonly string[]
  readonly woken: readonly string[]
}

/** The requests of this box, as the newest record has them. */
export class OwnRequests {
  readonly #clock: Clock
  readonly #contended: (id: string) => void
  #session: string | undefined
  #own = new Map<string, RequestRecord>()
  /** How many requests, of any box, claim a key. */
  #claims: ReadonlyMap<string, number> = new Map()
  /** By grant that was alone: what ends the time for which its box relies on being told. */
  readonly #alone = new Map<string, Timer>()

  /** @param wanted see {@link watchAlone}. */
  constructor(clock: Clock, contended: (id: string) => void) {
    this.#clock = clock
    this.#contended = contended
  }

  /** From now on the requests of this session are followed. */
  join(session: string): void {
    this.#session = session
  }

  /** Goes on to a newer record, and tells what has changed. */
  follow({ requests }: TableRecord): Changes {
    const before = this.#own
    this.#own = new Map(requests.filter(each => each.session === this.#session).map(each => [each.id, each]))
    const claims = new Map<string, number>()
    for (const { key } of requests.flatMap(each => each.claims)) claims.set(key, (claims.get(key) ?? 0) + 1)
    this.#claims = claims
    // The box is told again when the time is over: it ignores what it hears before it knows of the grant.
    for (const id of this.#alone.keys()) if (!this.#isUncontended(id)) this.#contended(id)
    const lost = [...before.keys()].filter(id => !this.#own.has(id))
    const woken = [...before.values()].filter(
      ({ id, phase }) => phase === 'waiting' && this.#own.get(id)?.phase === 'reserved',
    )
    return { lost, woken: woken.map(({ id }) => id) }
  }

  get(id: string): RequestRecord | undefined {
    return this.#own.get(id)
  }

  /** Whether no request, of any box, claims one of these keys. */
  areFree(keys: readonly string[]): boolean {
    return !keys.some(key => this.#claims.has(key))
  }

  /**
   * Watches a grant, if it excludes all others and no other request claims any of its keys. Then `contended` is called
   * as soon as one does, or after so many milliseconds. False: the grant is not alone.
   */
  watchAlone(id: string, time: number): boolean {
    this.#alone.get(id)?.cancel()
    this.#alone.delete(id)
    if (!this.#isUncontended(id)) return false
    const over = (): void => {
      this.#alone.delete(id)
      this.#contended(id)
    }
    this.#alone.set(id, this.#clock.after(time, over, false))
    return true
  }

  stop(): void {
    for (const timer of this.#alone.values()) timer.cancel()
  }

  #isUncontended(id: string): boolean {
    const claims = this.#own.get(id)?.claims
    return claims?.every(({ key, mode }) => mode === 'exclusive' && this.#claims.get(key) === 1) ?? false
  }
}

/** The keys that a request claims for itself alone. */
export function exclusiveKeys(claims: readonly Claim[]): readonly string[] {
  return claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
}
