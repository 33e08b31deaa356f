import { AssertionError } from 'node:assert'
import { describe, expect as sure, test } from 'vitest'
import { expect } from '../../../src/conformance/expect.js'

class Failure extends Error {
  readonly code = 'FAILURE'
}

const thrower = (): never => {
  throw new Failure('it failed badly')
}

/** What is so, and what is not: by the same verb. */
const verbs: Readonly<Record<string, readonly [right: () => unknown, wrong: () => unknown]>> = {
  toBe: [() => expect(NaN).toBe(NaN), () => expect({}).toBe({})],
  'not.toBe': [() => expect(1).not.toBe(2), () => expect(1).not.toBe(1)],
  'toEqual of objects': [
    () => expect({ a: [1, { b: undefined }] }).toEqual({ a: [1, {}] }),
    () => expect({ a: 1, b: 2 }).toEqual({ a: 1 }),
  ],
  'toEqual of lists': [() => expect([1n]).toEqual([1n]), () => expect([1, 2]).toEqual([1])],
  'toEqual of maps': [
    () => expect(new Map([['a', 1]])).toEqual(new Map([['a', 1]])),
    () => expect(new Map([['a', 1]])).toEqual(new Map([['a', 2]])),
  ],
  'toEqual of unlike things': [() => expect(null).toEqual(null), () => expect([]).toEqual({})],
  any: [
    () => expect({ age: 5 }).toEqual({ age: expect.any(Number) }),
    () => expect({ age: '5' }).toEqual({ age: expect.any(Number) }),
  ],
  toMatchObject: [
    () => expect(new Failure('x')).toMatchObject({ code: 'FAILURE' }),
    () => expect([{ a: 1 }, { a: 2 }]).toMatchObject([{ a: 1 }]),
  ],
  toBeDefined: [() => expect(0).toBeDefined(), () => expect(undefined).toBeDefined()],
  toBeUndefined: [() => expect(undefined).toBeUndefined(), () => expect(null).toBeUndefined()],
  toBeInstanceOf: [
    () => expect(new Failure('')).toBeInstanceOf(Error),
    () => expect('').toBeInstanceOf(Error),
  ],
  toBeLessThan: [() => expect(1).toBeLessThan(2), () => expect(2).toBeLessThan(2)],
  toBeLessThanOrEqual: [() => expect(2).toBeLessThanOrEqual(2), () => expect(3).toBeLessThanOrEqual(2)],
  toBeGreaterThan: [() => expect(2n).toBeGreaterThan(1n), () => expect(undefined).toBeGreaterThan(1)],
  toBeGreaterThanOrEqual: [
    () => expect(2).toBeGreaterThanOrEqual(2),
    () => expect(NaN).toBeGreaterThanOrEqual(2),
  ],
  toHaveLength: [() => expect([1]).toHaveLength(1), () => expect(undefined).toHaveLength(0)],
  toContain: [() => expect([1]).toContain(1), () => expect([1]).toContain(2)],
  toMatch: [() => expect('abc').toMatch(/b/), () => expect('abc').toMatch('d')],
  'toThrow a class': [() => expect(thrower).toThrow(Failure), () => expect(thrower).toThrow(TypeError)],
  'toThrow a message': [() => expect(thrower).toThrow('badly'), () => expect(thrower).toThrow(/well/)],
  'toThrow at all': [() => expect(thrower).toThrow(), () => expect(() => 1).toThrow()],
  'not.toThrow': [() => expect(() => 1).not.toThrow(), () => expect(thrower).not.toThrow()],
  'rejects.toThrow': [
    () => expect(Promise.reject(new Failure('x'))).rejects.toThrow(Failure),
    () => expect(Promise.reject(new Failure('x'))).rejects.toThrow(TypeError),
  ],
  'rejects at all': [
    () => expect(Promise.reject(new Failure('x'))).rejects.toThrow(),
    () => expect(Promise.resolve(1)).rejects.toThrow(),
  ],
  'rejects.toBe': [
    () => expect(Promise.reject(new Failure('x'))).rejects.toMatchObject({ message: 'x' }),
    () => expect(Promise.reject(new Failure('x'))).rejects.toBe('x'),
  ],
  'resolves.toBe': [
    () => expect(Promise.resolve(1)).resolves.toBe(1),
    () => expect(Promise.resolve(1)).resolves.toBeUndefined(),
  ],
}

describe('expect of the conformance kit', () => {
  test.each(Object.entries(verbs))('%s', async (_, [right, wrong]) => {
    await right()
    await sure((async () => wrong())()).rejects.toThrow(AssertionError)
  })

  test('a promise that is rejected with something else passes it on to no verb but rejects', async () => {
    await sure(expect(Promise.reject(new Failure('x'))).resolves.toBe(1)).rejects.toThrow(Failure)
  })
})
