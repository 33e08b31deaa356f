import { InvalidArgumentError, shown } from '../errors.js'

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

/** Claims that are granted together or not at all: sorted by key, each key once, checked. */
export interface ClaimSet {
  readonly claims: readonly Claim[]
  /** Equal for equal claim sets, different for different ones. */
  readonly signature: string
  /** The keys for a message, joined by `, `. */
  readonly title: string
}

/** Characters that a key has at the most. */
export const LONGEST_KEY = 1024
const MOST_PERMITS = 2 ** 31 - 1

/**
 * Checks claims and brings them into their one order.
 * @throws InvalidArgumentError when there is none, a key is unfit, a key stands in two modes, or permits don't fit.
 */
export function claimSet(claims: readonly Claim[]): ClaimSet {
  if (claims.length === 1) return toSet([checked(claims[0]!)])
  if (claims.length === 0) throw new InvalidArgumentError('a lock takes at least one key, not none')
  const byKey = new Map<string, Claim>()
  for (const claim of claims.map(checked)) {
    const earlier = byKey.get(claim.key)
    if (earlier && text(earlier) !== text(claim)) {
      throw new InvalidArgumentError(`key ${shown(claim.key)} is claimed twice, in two different ways`)
    }
    byKey.set(claim.key, claim)
  }
  return toSet([...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
}

function toSet(claims: readonly Claim[]): ClaimSet {
  let signature = ''
  let title = ''
  // The length before each key keeps two sets apart whatever characters the keys hold.
  for (const claim of claims) {
    signature += `${claim.key.length}:${text(claim)}`
    title = title === '' ? claim.key : `${title}, ${claim.key}`
  }
  return { claims, signature, title }
}

function text(claim: Claim): string {
  switch (claim.mode) {
    case 'exclusive':
      return `${claim.key}x`
    case 'shared':
      return `${claim.key}s`
    case 'permits':
      return `${claim.key}p${claim.permits}/${claim.max}`
  }
}

/** A copy, so that the caller can't change it afterwards. */
function checked(claim: Claim): Claim {
  if (typeof claim !== 'object' || claim === null) {
    throw new InvalidArgumentError(`a claim takes an object with key and mode, not ${shown(claim)}`)
  }
  const { key, mode } = claim
  checkKey('key', key)
  switch (mode) {
    case 'exclusive':
    case 'shared':
      return { key, mode }
    case 'permits': {
      const { permits, max } = claim
      checkPermits('max, the permits of the semaphore,', max, MOST_PERMITS)
      checkPermits('permits', permits, max)
      return { key, mode, permits, max }
    }
    default:
      throw new InvalidArgumentError(`mode takes 'exclusive', 'shared' or 'permits', not ${shown(mode)}`)
  }
}

/**
 * Checks a name that engines store: text of 1 to 1024 characters that is well-formed Unicode without NUL.
 * @throws InvalidArgumentError that names the option.
 */
export function checkKey(option: string, key: unknown): asserts key is string {
  if (typeof key !== 'string' || key.length === 0 || key.length > LONGEST_KEY || UNFIT.test(key)) {
    throw new InvalidArgumentError(
      `${option} takes text of 1 to ${LONGEST_KEY} characters, well-formed and without NUL, not ${shown(key)}`,
    )
  }
}

/** NUL, which ends a text in some engines, and halves of surrogate pairs, which have no UTF-8 form. */

const UNFIT = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

function checkPermits(option: string, value: unknown, most: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > most) {
    throw new InvalidArgumentError(`${option} takes a whole number from 1 to ${most}, not ${shown(value)}`)
  }
}

/** Whether one of the two has to wait for the other, were they alone on their keys. */
export function conflicting(one: Pick<ClaimSet, 'claims'>, other: Pick<ClaimSet, 'claims'>): boolean {
  for (const a of one.claims) {
    for (const b of other.claims) if (a.key === b.key && conflict(a, b)) return true
  }
  return false
}

/** Whether two claims on the same key exclude each other, were they the only ones. */
export function conflict(a: Claim, b: Claim): boolean {
  if (a.mode === 'permits' && b.mode === 'permits') return a.permits + b.permits > a.max
  return a.mode !== 'shared' || b.mode !== 'shared'
}
