import type { Claim } from '../../engine/claim.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** What another box's change of the record did to the requests of this box. */
interface Changes {
  readonly lost: readonly string[]
  readonly woken: readonly string[]
}

/** The requests of this box, as the newest record has them. */
export class OwnRequests {
  #session: string | undefined
  #own = new Map<string, RequestRecord>()
  #claimed: ReadonlySet<string> = new Set()

  /** From now on the requests of this session are followed. */
  join(session: string): void {
    this.#session = session
  }

  /** Goes on to a newer record, and tells what has changed. */
  follow({ requests }: TableRecord): Changes {
    const before = this.#own
    this.#own = new Map(requests.filter(each => each.session === this.#session).map(each => [each.id, each]))
    this.#claimed = new Set(requests.flatMap(({ claims }) => claims.map(({ key }) => key)))
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
    return !keys.some(key => this.#claimed.has(key))
  }
}

/** The keys that a request claims for itself alone. */
export function exclusiveKeys(claims: readonly Claim[]): readonly string[] {
  return claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
}
