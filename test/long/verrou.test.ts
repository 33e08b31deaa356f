import nodeAssert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { E_LOCK_NOT_OWNED } from '@verrou/core'
import { registerStoreTestSuite } from '@verrou/core/test_suite'
import type { LockStore } from '@verrou/core/types'
import { afterAll, assert as chai, beforeAll, describe, expect, test } from 'vitest'
import { open, type Box, type Grant } from '../../src/index.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

const boxes: Promise<Box>[] = []
let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(async () => {
  for (const box of boxes) await (await box).close()
  await redis.kill()
})

/** A store of @verrou/core on a box. */
class BoxStore implements LockStore {
  readonly #box: Promise<Box>
  readonly #held = new Map<string, Held>()

  constructor(url: string) {
    this.#box = open(url)
    boxes.push(this.#box)
  }

  async save(key: string, owner: string, ttl: number | null): Promise<boolean> {
    const lock = (await this.#box).mutex(key)
    const grant = await lock.tryAcquire(ttl === null ? {} : { lease: ttl })
    if (!grant) return false
    this.#held.set(key, new Held(grant, owner, ttl))
    return true
  }

  async delete(key: string, owner: string): Promise<void> {
    await this.#owned(key, owner).end()
  }

  async forceDelete(key: string): Promise<void> {
    const box = await this.#box
    for await (const { key: found, holders } of box.inspect(key))
      if (found === key) for (const { token } of holders) await box.forceRelease(key, token!)
  }

  async exists(key: string): Promise<boolean> {
    for await (const { key: found, holders } of (await this.#box).inspect(key))
      if (found === key && holders.length > 0) return true
    return false
  }

  async extend(key: string, owner: string, duration: number): Promise<void> {
    this.#owned(key, owner).until(duration)
  }

  #owned(key: string, owner: string): Held {
    const held = this.#held.get(key)
    if (!held || held.owner !== owner || held.grant.expiresIn() === 0) throw new E_LOCK_NOT_OWNED()
    return held
  }
}

/** A grant that is released after a duration, which can be extended. */
class Held {
  #timer: NodeJS.Timeout | undefined

  constructor(
    readonly grant: Grant,
    readonly owner: string,
    duration: number | null,
  ) {
    if (duration !== null) this.until(duration)
  }

  until(duration: number): void {
    clearTimeout(this.#timer)
    // The suite checks in the same millisecond in which the duration ends, so the release comes 20 ms earlier.
    this.#timer = setTimeout(() => void this.end(), duration - 20)
  }

  async end(): Promise<void> {
    clearTimeout(this.#timer)
    await this.grant.release().catch(() => undefined)
  }
}

/** Provides the test runner and the assertions that the suite of verrou expects. */
function testOfTheirs(
  name: string,
  body: (context: { assert: object }) => Promise<void>,
): { throws(message: string, type: new () => Error): void } {
  let expected: { message: string; type: new () => Error } | undefined
  const assert = {
    isTrue: chai.isTrue,
    isFalse: chai.isFalse,
    isString: chai.isString,
    equal: chai.equal,
    deepEqual: chai.deepEqual,
    rejects: (task: () => Promise<unknown>, message: string) => nodeAssert.rejects(task, { message }),
  }
  test(name, async () => {
    if (!expected) return body({ assert })
    const { type, message } = expected
    await expect(body({ assert })).rejects.toSatisfy(
      (error: Error) => error instanceof type && error.message === message,
    )
  })
  return { throws: (message, type) => (expected = { message, type }) }
}

describe.each([
  ['memory', () => `memory:${randomUUID()}`],
  ['Redis', () => `${redis.url}?prefix=${randomUUID()}:`],
])('the suite of @verrou/core for its drivers, on %s', (_, url) => {
  registerStoreTestSuite({ test: testOfTheirs as never, createStore: () => new BoxStore(url()) })
})
