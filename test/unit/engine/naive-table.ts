import type { LockOperation, Outcomes } from '../../../src/engine/contract.js'
import { coverTtl, entryTtl } from '../../../src/engine/wait-times.js'
import type { Claim } from '../../../src/engine/claim.js'

/** The claims of a request. */
type Claimant = Pick<NaiveRequest, 'claims'>

/** A request as the naive table knows it. */
export interface NaiveRequest {
  readonly id: string
  readonly session: string
  claims: readonly Claim[]
  granted: boolean
  /** Whether the real table has reserved its keys. */
  reserved: boolean
  /** Whether a sign of its session has named it. */
  covered: boolean
  lease: number
  number: number
  expires: number
}

export type NaiveOutcome = Outcomes[LockOperation['type']]

/**
 * The lock table as one list of requests in order of arrival. It keeps no other state, and finds the holders in the
 * whole list each time. An expired request blocks no other request. The real table drops an expired request only when
 * another request needs its keys; `remnants` are the expired requests that it still has.
 */
export class NaiveTable {
  /** The requests in order of arrival. */
  requests: NaiveRequest[] = []
  /** Time of the last sign of each session. */
  readonly #seen = new Map<string, number>()
  #number: number

  constructor(number: number) {
    this.#number = number
  }

  /** Whether a request is compatible with all requests in `before`, on each of its keys. */
  mayHold(request: Claimant, before: readonly Claimant[]): boolean {
    return request.claims.every(claim => {
      const others = before.flatMap(({ claims }) => claims.filter(({ key }) => key === claim.key))
      if (others.length === 0) return true
      if (claim.mode === 'exclusive') return false
      if (others.some(({ mode }) => mode !== claim.mode)) return false
      if (claim.mode === 'shared') return true
      const taken = others.reduce((sum, other) => sum + (other.mode === 'permits' ? other.permits : 0), 0)
      return taken + claim.permits <= claim.max
    })
  }

  /** Whether a request may hold at this time, given the other requests. */
  free(request: NaiveRequest, now: number): boolean {
    const before = this.requests.slice(0, this.requests.indexOf(request))
    return this.mayHold(
      request,
      before.filter(({ expires }) => now < expires),
    )
  }

  /**
   * Executes an operation.
   *
   * @param remnants IDs of expired requests that the real table has not dropped yet
   */
  decide(operation: LockOperation, now: number, remnants: ReadonlySet<string>): NaiveOutcome {
    const known = (id: string): NaiveRequest | undefined => this.requests.find(request => request.id === id)
    const gone = (request: NaiveRequest): void => {
      this.requests = this.requests.filter(other => other !== request)
    }
    const holding = (id: string, number: number): NaiveRequest | undefined => {
      const request = known(id)
      return request?.granted && request.number === number && now < request.expires ? request : undefined
    }
    const give = (request: NaiveRequest, lease: number): NaiveOutcome => {
      request.granted = true
      request.number = ++this.#number
      request.expires = now + lease
      return { state: 'held', id: request.id, number: request.number }
    }
    const standing = (request: NaiveRequest): NaiveOutcome =>
      request.granted
        ? { state: 'held', id: request.id, number: request.number }
        : ({ state: 'queued', id: request.id } as NaiveOutcome)
    const arrive = (
      id: string,
      session: string,
      claims: readonly Claim[],
      lease: number,
      wait: number,
    ): NaiveOutcome => {
      const expires = now + entryTtl({ lease, wait })
      const request: NaiveRequest = {
        id,
        session,
        claims,
        granted: false,
        reserved: false,
        covered: false,
        lease,
        number: 0,
        expires,
      }
      this.requests.push(request)
      if (this.free(request, now)) return give(request, lease)
      if (wait > 0) return standing(request)
      gone(request)
      return { state: 'busy' }
    }
    // An expired request blocks no other, but it is still there when its session comes back.
    this.requests = this.requests.filter(request => now < request.expires || remnants.has(request.id))

    switch (operation.type) {
      case 'enqueue': {
        const repeated = known(operation.request.id)
        if (repeated) return standing(repeated)
        const { request, lease, wait } = operation
        const { id, session, claims } = request
        return arrive(id, session, claims, lease, wait)
      }
      case 'checkIn': {
        const request = known(operation.request.id)
        if (!request) return { state: 'gone' }
        if (request.granted && now >= request.expires) {
          gone(request)
          return { state: 'gone' }
        }
        request.lease = operation.lease
        request.expires = now + (request.granted ? operation.lease : entryTtl(operation))
        this.#extend(request)
        if (!request.granted && this.free(request, now)) return give(request, operation.lease)
        return standing(request)
      }
      case 'alive': {
        this.#seen.set(operation.session, now)
        for (const { id } of operation.requests) {
          const request = known(id)
          if (request && !request.granted && !request.reserved) request.covered = true
        }
        for (const request of this.requests) this.#extend(request)
        return undefined
      }
      case 'cancel': {
        const request = known(operation.request.id)
        if (request) gone(request)
        return undefined
      }
      case 'renew': {
        const request = holding(operation.request.id, operation.number)
        if (request) request.expires = now + operation.lease
        return request !== undefined
      }
      case 'release': {
        const request = known(operation.request.id)
        if (!request?.granted || request.number !== operation.number) return false
        gone(request)
        return now < request.expires
      }
      case 'extendOrYield': {
        const request = holding(operation.request.id, operation.number)
        if (!request) {
          const next = known(operation.next.id)
          return next ? standing(next) : { state: 'gone' }
        }
        const keys = request.claims.map(({ key }) => key)
        const wanted = this.requests.some(
          other =>
            !other.granted &&
            now < other.expires &&
            other.claims.some(({ key }) => keys.includes(key)) &&
            // A request that has only expired requests before it may not know that yet.
            !this.mayHold(other, this.requests.slice(0, this.requests.indexOf(other))),
        )
        if (!wanted) return give(request, operation.lease)
        gone(request)
        return arrive(operation.next.id, request.session, request.claims, operation.lease, operation.wait)
      }
      case 'downgrade': {
        const request = holding(operation.request.id, operation.number)
        if (request) request.claims = request.claims.map(({ key }) => ({ key, mode: 'shared' }))
        return request !== undefined
      }
      case 'forceRelease': {
        const request = this.requests.find(
          ({ granted, number, claims }) =>
            granted && number === operation.number && claims.some(({ key }) => key === operation.key),
        )
        if (request) gone(request)
        return request !== undefined
      }
      case 'revoke': {
        const before = this.requests.length
        this.requests = this.requests.filter(({ session }) => session !== operation.session)
        return before - this.requests.length
      }
      case 'sweepExpired':
      case 'inspect':
        return undefined
    }
  }

  /** Extends the expiry of a covered waiter, which lives as long as its session sends signs. */
  #extend(request: NaiveRequest): void {
    const seen = this.#seen.get(request.session)
    if (seen === undefined || !request.covered || request.granted || request.reserved) return
    request.expires = Math.max(request.expires, seen + coverTtl(request.lease))
  }
}
