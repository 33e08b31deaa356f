import { conflict, type Claim } from '../engine/claim.js'
import { InvalidArgumentError, shown } from '../errors.js'
import { checkKey } from '../options.js'

/** Claims that are granted together or not at all: checked, sorted by key, each key once. */
export interface ClaimSet {
  readonly claims: readonly Claim[]
  /** Equal for equal claim sets, different for different ones. */
  readonly signature: string
  /** The keys for a message, joined by `, `. */
  readonly title: string
}

const MAX_PERMITS = 2 ** 31 - 1

/**
 * Checks claims and brings them into their one order.
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
  let signature = ''
  let title = ''
  for (const claim of claims) {
    signature += text(claim)
    title = title === '' ? claim.key : `${title}, ${claim.key}`
  }
  return { claims, signature, title }
}

/**
 * A claim as text. It can be read from left to right in one way only, also when other text follows: every number ends
 * with a character that is not a digit, and the length of the key comes before the key.
 */
function text(claim: Claim): string {
  const permits = claim.mode === 'permits' ? `${claim.permits}/${claim.max}/` : ''
  return `${claim.mode}/${permits}${claim.key.length}:${claim.key}`
}

/** A copy, so that the caller can't change it afterwards. */
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

function checkPermits(option: string, value: unknown, most: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > most) {
    throw new InvalidArgumentError(`${option} must be a whole number from 1 to ${most}, not ${shown(value)}`)
  }
}

/** Whether one of the two would have to wait for the other if they were alone on their keys. */
export function conflicting(one: Pick<ClaimSet, 'claims'>, other: Pick<ClaimSet, 'claims'>): boolean {
  for (const a of one.claims) {
    for (const b of other.claims) if (a.key === b.key && conflict(a, b)) return true
  }
  return false
}
