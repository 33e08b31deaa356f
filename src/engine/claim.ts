/** Alone on the key. */
export interface ExclusiveClaim {
  readonly key: string
  readonly mode: 'exclusive'
}

/** Together with other shared claims on the key. */
export interface SharedClaim {
  readonly key: string
  readonly mode: 'shared'
}

/** `permits` of the `max` that the key has; every caller of a key must name the same `max`. */
export interface PermitsClaim {
  readonly key: string
  readonly mode: 'permits'
  readonly permits: number
  readonly max: number
}

/** One key in one mode. */
export type Claim = ExclusiveClaim | SharedClaim | PermitsClaim

/** The claims of a grant after a downgrade: each of them shared. */
export function sharedClaims(claims: readonly Claim[]): readonly SharedClaim[] {
  return claims.map(({ key }) => ({ key, mode: 'shared' }))
}

/** Whether two claims on the same key would exclude each other if they were the only ones. */
export function conflict(a: Claim, b: Claim): boolean {
  if (a.mode === 'permits' && b.mode === 'permits') return a.permits + b.permits > a.max
  return a.mode !== 'shared' || b.mode !== 'shared'
}
