import { describe, expect, test } from 'vitest'
import { claimSet, conflicting } from '../../../src/core/claims.js'
import { checkKey } from '../../../src/base/options.js'
import { conflict, type Claim } from '../../../src/engine/claim.js'
import { InvalidArgumentError } from '../../../src/base/errors.js'

const exclusive = (key: string): Claim => ({ key, mode: 'exclusive' })
const shared = (key: string): Claim => ({ key, mode: 'shared' })

describe('a set of claims', () => {
  test('it is sorted by key, each key once', () => {
    const { claims, title } = claimSet([exclusive('b'), shared('c'), exclusive('a'), exclusive('b')])
    expect(claims).toEqual([exclusive('a'), exclusive('b'), shared('c')])
    expect(title).toBe('a, b, c')
  })
})

describe('claims in conflict', () => {
  test('permits conflict when there are not enough for both', () => {
    const permits = (key: string, count: number): Claim => ({ key, mode: 'permits', permits: count, max: 4 })
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
