import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { claimSet, conflicting } from '../../../src/core/claims.js'
import { checkKey } from '../../../src/base/options.js'
import { conflict, type Claim } from '../../../src/engine/claim.js'
import { InvalidArgumentError } from '../../../src/base/errors.js'

const exclusive = (key: string): Claim => ({ key, mode: 'exclusive' })
const shared = (key: string): Claim => ({ key, mode: 'shared' })
const permits = (key: string, count: number, max = 4): Claim => ({
  key,
  mode: 'permits',
  permits: count,
  max,
})

const someKey = fc.string({
  unit: fc.constantFrom('a', 'b', '1', ':', '/', 'x', 's', 'p', ','),
  minLength: 1,
  maxLength: 4,
})
const someClaim: fc.Arbitrary<Claim> = fc.oneof(
  someKey.map(exclusive),
  someKey.map(shared),
  fc.tuple(someKey, fc.integer({ min: 1, max: 12 })).map(([key, count]) => permits(key, count, 12)),
)
const someClaims = fc.uniqueArray(someClaim, { minLength: 1, maxLength: 4, selector: ({ key }) => key })

describe('a set of claims', () => {
  test('it is sorted by key, each key once', () => {
    const { claims, title } = claimSet([exclusive('b'), shared('c'), exclusive('a'), exclusive('b')])
    expect(claims).toEqual([exclusive('a'), exclusive('b'), shared('c')])
    expect(title).toBe('a, b, c')
  })

  test('equal sets have equal signatures in any order of claims', () => {
    fc.assert(
      fc.property(someClaims, claims => {
        const [one, other] = [claimSet(claims), claimSet([...claims].reverse())]
        expect(other.signature).toBe(one.signature)
        expect(other.claims).toEqual(one.claims)
      }),
    )
  })

  test('different sets have different signatures with any characters in keys', () => {
    fc.assert(
      fc.property(someClaims, someClaims, (first, second) => {
        const [one, other] = [claimSet(first), claimSet(second)]
        const same = JSON.stringify(one.claims) === JSON.stringify(other.claims)
        expect(one.signature === other.signature).toBe(same)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('claims in conflict', () => {
  test('exclusive claims conflict with everything, shared ones only with others of another mode', () => {
    expect(conflict(exclusive('a'), exclusive('a'))).toBe(true)
    expect(conflict(exclusive('a'), shared('a'))).toBe(true)
    expect(conflict(exclusive('a'), permits('a', 1))).toBe(true)
    expect(conflict(shared('a'), shared('a'))).toBe(false)
    expect(conflict(shared('a'), permits('a', 1))).toBe(true)
  })

  test('permits conflict when there are not enough for both', () => {
    expect(conflict(permits('a', 2), permits('a', 2))).toBe(false)
    expect(conflict(permits('a', 2), permits('a', 3))).toBe(true)
  })

  test('sets conflict if their claims on a common key conflict', () => {
    const set = (...claims: Claim[]) => claimSet(claims)
    expect(conflicting(set(exclusive('a'), exclusive('b')), set(exclusive('b'), exclusive('c')))).toBe(true)
    expect(conflicting(set(exclusive('a')), set(exclusive('b')))).toBe(false)
    expect(conflicting(set(shared('a'), exclusive('b')), set(shared('a'), exclusive('c')))).toBe(false)
  })
})

describe('a key', () => {
  test('may be any well-formed text of 1 to 1024 characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), key => {
        if (!key.includes('\0')) expect(() => checkKey('key', key)).not.toThrow()
      }),
    )
    expect(() => checkKey('key', 'x'.repeat(1024))).not.toThrow()
  })

  test.each([
    '',
    'x'.repeat(1025),
    'a\0',
    '\0',
    '\ud800',
    'a\udc00b',
    '\udc00\ud800',
    5,
    undefined,
    null,
    ['a'],
    {},
  ])('is not %j', key => {
    expect(() => checkKey('name', key)).toThrow(InvalidArgumentError)
    expect(() => checkKey('name', key)).toThrow(/^name must be a string/)
  })
})
