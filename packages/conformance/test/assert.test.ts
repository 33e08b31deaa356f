import { AssertionError } from 'node:assert'
import { describe, expect, test } from 'vitest'
import { assert } from '../src/assert.js'

class Refused extends TypeError {}

const refused = (): Promise<never> =>
  Promise.reject(new Refused('no: (busy)', { cause: { code: 7, by: 'a' } }))

describe('an assertion of the conformance kit', () => {
  const failing: readonly (readonly [string, () => unknown, string])[] = [
    ['below', () => assert.below(2, 2), '2 < 2'],
    ['below, of nothing', () => assert.below(undefined, 2), 'undefined < 2'],
    ['atMost', () => assert.atMost(3, 2), '3 <= 2'],
    ['above', () => assert.above(1n, 1), '1n > 1'],
    ['atLeast', () => assert.atLeast(0, 2), '0 >= 2'],
    ['isA', () => assert.isA(new TypeError('x'), Refused), 'instanceof'],
    ['includes', () => assert.includes('abc', 'd'), "'abc' includes 'd'"],
    ['excludes', () => assert.excludes(['a'], 'a'), 'excludes'],
    ['hasLength', () => assert.hasLength(undefined, 2), 'has the length 2'],
    ['has', () => assert.has({ a: { b: 1 } }, { a: { b: 2 } }), 'b: 1'],
    ['has, of a list', () => assert.has({ a: [1, 2] }, { a: [1] }), 'a:'],
    ['rejects', () => assert.rejects(Promise.resolve(7)), 'rejection'],
    ['rejects, by a class', () => assert.rejects(refused(), RangeError), 'RangeError'],
    ['rejects, by a text', () => assert.rejects(refused(), 'idle'), 'idle'],
    ['rejects, by properties', () => assert.rejects(refused(), { cause: { code: 8 } }), 'code: 7'],
    ['throws', () => assert.throws(() => 7), 'exception'],
  ]

  test.each(failing)('%s throws an error that names both sides', async (_, look, expected) => {
    const error: unknown = await Promise.resolve()
      .then(look)
      .catch((reason: unknown) => reason)
    expect(error instanceof AssertionError || error instanceof Refused).toBe(true)
    expect((error as Error).message).toContain(expected)
  })
})
