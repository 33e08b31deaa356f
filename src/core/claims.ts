import { conflict, type Claim } from '../engine/claim.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkKey } from '../base/options.js'

/** Claims that are granted together or not at all. They are checked, sorted by key, and have each key once. */
export interface ClaimSet {
  readonly claims: readonly Claim[]
  /** Equal for equal claim sets, and different for different ones. */
  readonly signature: string
  /** The keys for messages, joined by `, `. */
  readonly title: string
}

const MAX_PERMITS = 2 ** 31 - 1

/**
 * Checks claims, sorts them by key, and removes duplicates.
 * @throws InvalidArgumentError when there is no claim, a key is invalid or has two different claims, or permits are
 * out of range.
 */
export function claimSet(claims: readonly Claim[]): ClaimSet {
  if (claims.length === 1) return toSet([checked(claims[0]!)])
  if (claims.length === 0) throw new InvalidArgumentError('a lock needs at least one key')
  const byKey = new Map<string, Claim>()
  for (const claim of claims.map(checked)) {
    const earlier = byKey.get(claim.key)
    if (earlier && text(earlier) !== text(claim)) {
      throw new InvalidArgumentError(`key ${shown(claim.key)} has two different claims`)
    }
    byKey.set(claim.key, claim)
  }
  return toSet([...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
}

function toSet(claims: readonly Claim[]): ClaimSet {
  const signature = claims.map(text).join('')
  return { claims, signature, title: claims.map(({ key }) => key).join(', ') }
}

/**
 * Encodes a claim. The encoding is prefix-free, so that joined claims are unambiguous: a character that is not a digit
 * ends each number, and the length of the key comes before the key. It is short, because each new lock hashes it.
 */
function text(claim: Claim): string {
  const permits = claim.mode === 'permits' ? `${claim.permits}/${claim.max}/` : ''
  return `${claim.mode.charAt(0)}${permits}${claim.key.length}:${claim.key}`
}

/** Checks a claim, and copies it, so that the caller can't change it later. */
function checked(claim: Claim): Claim {
  if (typeof claim !== 'object' || claim === null) {
    throw new InvalidArgumentError(`a claim must be an object with key and mode, not ${shown(claim)}`)
  }
  const { key, mode } = claim
  checkKey('key', key)
  switch (mode) {
    case 'exclusive':
    case 'shared':
      return { key, mode }
    case 'permits': {
      const { permits, max } = claim
      checkPermits('max', max, MAX_PERMITS)
      checkPermits('permits', permits, max)
      return { key, mode, permits, max }
    }
    default:
      throw new InvalidArgumentError(`mode must be 'exclusive', 'shared' or 'permits', not ${shown(mode)}`)
  }
}

function checkPermits(option: string, value: unknown, limit: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > limit) {
    throw new InvalidArgumentError(`${option} must be a whole number from 1 to ${limit}, not ${shown(value)}`)
  }
}

/** Whether one of two claim sets would have to wait for the other if no others existed. */
export function conflicting(one: Pick<ClaimSet, 'claims'>, other: Pick<ClaimSet, 'claims'>): boolean {
  for (const a of one.claims) {
    for (const b of other.claims) if (a.key === b.key && conflict(a, b)) return true
  }
  return false
}
