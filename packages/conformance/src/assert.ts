import node from 'node:assert/strict'
import { inspect } from 'node:util'

type Class = abstract new (...values: never[]) => unknown
/** Undefined fails every comparison. */
type Size = number | bigint | undefined
/** An expectation of an error: its class, a part or a pattern of its text, some properties, or a predicate. */
type Expected = Class | string | RegExp | object | ((error: unknown) => boolean)

/**
 * The assertions of `node:assert` that checks need, and some that it lacks. None narrows a type, because values change
 * while a check waits.
 */
export const assert = {
  equal: (actual: unknown, expected: unknown, message?: string): void =>
    node.equal(actual, expected, message),
  notEqual: (actual: unknown, expected: unknown, message?: string): void =>
    node.notEqual(actual, expected, message),
  deepEqual: (actual: unknown, expected: unknown): void => node.deepEqual(actual, expected),
  match: (text: string, part: string | RegExp): void => node.match(text, pattern(part)),
  throws: (call: () => unknown, expected?: Expected): void => node.throws(call, validation(expected)),
  doesNotThrow: (call: () => unknown): void => node.doesNotThrow(call),
  rejects: (promise: Promise<unknown>, expected?: Expected): Promise<void> =>
    node.rejects(promise, validation(expected)),

  /** These name both operands when they fail. */
  below: (actual: Size, limit: Size): void => holds(actual! < limit!, actual, '<', limit),
  atMost: (actual: Size, limit: Size): void => holds(actual! <= limit!, actual, '<=', limit),
  above: (actual: Size, limit: Size): void => holds(actual! > limit!, actual, '>', limit),
  atLeast: (actual: Size, limit: Size): void => holds(actual! >= limit!, actual, '>=', limit),
  isA: (actual: unknown, type: Class): void => holds(actual instanceof type, actual, 'instanceof', type),
  includes: (all: string | readonly unknown[], item: string): void =>
    holds(all.includes(item), all, 'includes', item),
  excludes: (all: readonly unknown[], item: unknown): void =>
    holds(!all.includes(item), all, 'excludes', item),
  hasLength: (actual: ArrayLike<unknown> | undefined, length: number): void =>
    holds(actual?.length === length, actual, 'has the length', length),

  /** Asserts that a value has all properties of another, at any depth. */
  has: (actual: unknown, expected: object): void => node.deepEqual(part(actual, expected), expected),
}

/** Returns the error with which a promise rejects. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([promise])
  if (outcome.status === 'rejected') return outcome.reason
  throw new Error(`no error, but ${String(outcome.value)}`)
}

/** Converts an expectation for `node:assert`, which would read a text as a message, and would compare whole objects. */
function validation(expected: Expected | undefined): RegExp {
  if (typeof expected === 'string') return pattern(expected)
  if (!isPlain(expected)) return expected as RegExp
  const validate = (error: unknown): boolean => {
    assert.has(error, expected)
    return true
  }
  return validate as unknown as RegExp
}

function pattern(part: string | RegExp): RegExp {
  return typeof part === 'string' ? new RegExp(part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : part
}

function holds(is: boolean, actual: unknown, relation: string, expected: unknown): void {
  node.ok(is, `not so: ${inspect(actual)} ${relation} ${inspect(expected)}`)
}

/** Returns a value with only those properties that `shape` has. */
function part(actual: unknown, shape: unknown): unknown {
  if (Array.isArray(shape) && Array.isArray(actual))
    return actual.map((item: unknown, index) => part(item, shape[index]))
  if (!isPlain(shape) || typeof actual !== 'object' || actual === null) return actual
  return Object.fromEntries(
    Object.keys(shape).map(key => [key, part((actual as Record<string, unknown>)[key], shape[key])]),
  )
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
