/** Excludes all other claims on the key. */
export interface ExclusiveClaim {
  readonly key: string
  readonly mode: 'exclusive'
}

/** Excludes all but other shared claims on the key. */
export interface SharedClaim {
  readonly key: string
  readonly mode: 'shared'
}

/** Takes `permits` of the `max` permits of the key. All callers of a key must pass the same `max`. */
export interface PermitsClaim {
  readonly key: string
  readonly mode: 'permits'
  readonly permits: number
  readonly max: number
}

/** A claim on one key, in one mode. */
export type Claim = ExclusiveClaim | SharedClaim | PermitsClaim

/** Returns the claims of a grant after a downgrade: each of them shared. */
export function sharedClaims(claims: readonly Claim[]): readonly SharedClaim[] {
  return claims.map(({ key }) => ({ key, mode: 'shared' }))
}

/** Whether two claims on the same key exclude each other if there are no others. */
export function conflict(a: Claim, b: Claim): boolean {
  if (a.mode === 'permits' && b.mode === 'permits') return a.permits + b.permits > a.max
  return a.mode !== 'shared' || b.mode !== 'shared'
}

/** The claims ahead of a place in the queue of a key. Says in O(1) whether one more claim is compatible with them. */
export class Ahead {
  #first: Claim | undefined
  #permits = 0

  /** Whether a claim is compatible with all claims that were added. */
  admits(claim: Claim): boolean {
    if (!this.#first) return true
    if (claim.mode === 'permits' && this.#first.mode === 'permits')
      // mutant: extra-permit
      return this.#permits + claim.permits <= claim.max
    // mutant: writer-joins-readers
    return !conflict(this.#first, claim)
  }

  /** Adds the next claim of the queue. Once a claim was not admitted, no later one is. */
  add(claim: Claim): void {
    if (!this.#first) this.#first = claim
    else if (this.#first.mode !== claim.mode) this.#first = { key: claim.key, mode: 'exclusive' }
    if (claim.mode === 'permits') this.#permits += claim.permits
  }
}
