import { AssertionError } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'

/** Something that can be constructed, for `instanceof`. */
type Class = abstract new (...values: never[]) => unknown
/** What an error is told by: its class, a part of its message, or a pattern of it. */
type Told = Class | string | RegExp

/** Looks at a value. `about` says what it is, where that isn't plain from the value. */
export function expect(actual: unknown, about?: string): Expectation {
  return new Expectation(actual, about, false)
}

/** Stands for any value of a class in what a value is compared with; `Number` for any number. */
expect.any = (type: Class): unknown => new Any(type)

class Any {
  constructor(readonly type: Class) {}

  fits(value: unknown): boolean {
    return value instanceof this.type || Object(value) instanceof this.type
  }
}

/** What can be said of a value. Each throws an AssertionError when it isn't so. */
class Expectation {
  readonly #actual: unknown
  readonly #about: string | undefined
  readonly #negated: boolean

  constructor(actual: unknown, about: string | undefined, negated: boolean) {
    this.#actual = actual
    this.#about = about
    this.#negated = negated
  }

  get not(): Expectation {
    return new Expectation(this.#actual, this.#about, !this.#negated)
  }

  /** What a promise is rejected with. */
  get rejects(): Settled {
    return new Settled(async () => {
      const value = await Promise.resolve(this.#actual).then(
        value => ({ value }),
        (error: unknown) => ({ error }),
      )
      if ('error' in value) return thrownAs(value.error)
      return fail(`${this.#name()} was to be rejected, and was fulfilled with ${inspect(value.value)}`)
    })
  }

  /** What a promise is fulfilled with. */
  get resolves(): Settled {
    return new Settled(async () => expect(await this.#actual))
  }

  toBe(expected: unknown): void {
    this.#verify(Object.is(this.#actual, expected), 'is', expected)
  }

  /** The same all the way down, where what is undefined counts as absent. */
  toEqual(expected: unknown): void {
    this.#verify(equal(this.#actual, expected, false), 'equals', expected)
  }

  /** Has all that the other has, all the way down. */
  toMatchObject(expected: object): void {
    this.#verify(equal(this.#actual, expected, true), 'has all of', expected)
  }

  toBeDefined(): void {
    this.#verify(this.#actual !== undefined, 'is not', undefined)
  }

  toBeUndefined(): void {
    this.#verify(this.#actual === undefined, 'is', undefined)
  }

  toBeInstanceOf(type: Class): void {
    this.#verify(this.#actual instanceof type, 'is of the class', type)
  }

  toBeLessThan(limit: number | bigint): void {
    this.#verify(this.#number() < limit, 'is less than', limit)
  }

  toBeLessThanOrEqual(limit: number | bigint): void {
    this.#verify(this.#number() <= limit, 'is at most', limit)
  }

  toBeGreaterThan(limit: number | bigint): void {
    this.#verify(this.#number() > limit, 'is greater than', limit)
  }

  toBeGreaterThanOrEqual(limit: number | bigint): void {
    this.#verify(this.#number() >= limit, 'is at least', limit)
  }

  toHaveLength(length: number): void {
    this.#verify(
      (this.#actual as ArrayLike<unknown> | undefined)?.length === length,
      'has the length',
      length,
    )
  }

  toContain(item: unknown): void {
    this.#verify((this.#actual as readonly unknown[]).includes(item), 'contains', item)
  }

  /** Of a text. */
  toMatch(part: string | RegExp): void {
    this.#verify(matches(String(this.#actual), part), 'contains', part)
  }

  /** Of a function that is called for it, and throws. */
  toThrow(told?: Told): void {
    let thrown: Expectation | undefined
    try {
      ;(this.#actual as () => unknown)()
    } catch (error) {
      thrown = thrownAs(error)
    }
    if (this.#negated) this.#verify(thrown !== undefined, 'throws', undefined)
    else if (thrown) thrown.toBeToldBy(told)
    else fail(`${this.#name()} was to throw, and did not`)
  }

  /** Of an error: by its class or by what its message contains. */
  toBeToldBy(told: Told | undefined): void {
    if (typeof told === 'function') this.toBeInstanceOf(told)
    else if (told !== undefined) expect((this.#actual as Error).message, 'the message').toMatch(told)
  }

  #number(): number | bigint {
    return this.#actual as number | bigint
  }

  #name(): string {
    return this.#about ?? inspect(this.#actual)
  }

  #verify(is: boolean, relation: string, expected: unknown): void {
    if (is !== this.#negated) return
    const whether = this.#negated ? 'is to be wrong' : 'is to be so'
    fail(`${this.#name()} ${relation} ${inspect(expected)}: this ${whether}`, this.#actual, expected)
  }
}

/** What can be said of what a promise is settled with. */
class Settled {
  readonly #settled: Promise<Expectation>

  constructor(settled: () => Promise<Expectation>) {
    this.#settled = settled()
    // It is looked at in what a verb below returns.
    this.#settled.catch(() => undefined)
  }

  async toBe(expected: unknown): Promise<void> {
    ;(await this.#settled).toBe(expected)
  }

  async toBeUndefined(): Promise<void> {
    ;(await this.#settled).toBeUndefined()
  }

  async toMatchObject(expected: object): Promise<void> {
    ;(await this.#settled).toMatchObject(expected)
  }

  async toThrow(told?: Told): Promise<void> {
    ;(await this.#settled).toBeToldBy(told)
  }
}

function thrownAs(error: unknown): Expectation {
  return expect(error, error instanceof Error ? String(error.stack) : inspect(error))
}

function matches(text: string, part: string | RegExp): boolean {
  return typeof part === 'string' ? text.includes(part) : part.test(text)
}

/** @param partly whether the actual value may have more properties */
function equal(actual: unknown, expected: unknown, partly: boolean): boolean {
  if (expected instanceof Any) return expected.fits(actual)
  if (Object.is(actual, expected)) return true
  if (!isObject(actual) || !isObject(expected)) return false
  if (Array.isArray(expected))
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => equal(actual[index], item, partly))
    )
  if (!isPlain(expected) || Array.isArray(actual)) return isDeepStrictEqual(actual, expected)
  const keys = new Set([...Object.keys(expected), ...(partly ? [] : Object.keys(actual))])
  return [...keys].every(key => equal(actual[key], expected[key], partly))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isPlain(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype
}

function fail(message: string, actual?: unknown, expected?: unknown): never {
  throw new AssertionError({ message, actual, expected, operator: 'expect' })
}
