import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { open } from '../../src/index.js'
import { runsKey } from '../../src/runs.js'
import { checkUnreserved, concurrencyKey, electionKey } from '../../src/base/reserved-keys.js'
import { claimSet } from '../../src/core/claims.js'
import { grantName } from '../../src/core/lease.js'
import type { Claim } from '../../src/engine/claim.js'
import { mapNames, parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import { markOf, rowName } from '../../src/engines/postgres/names.js'
import { Names } from '../../src/engines/redis/names.js'
import { redisOptions } from '../../src/engines/redis/redis-options.js'
import { decodeKey, encodeKey, NodePaths } from '../../packages/zookeeper/src/engine/names.js'
import { limiterId } from '../../src/limits/remote/kept-limiters.js'

/** Generates texts of these parts, some of which could be taken for parts of a name. */
function textOf(...parts: string[]): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 4 }).map(chosen => chosen.join(''))
}

const PUNCTUATION = [':', '/', '#', '.', '..', ' ', ',', '{', '}', '[', '"', '%', '%2E']
const someText = textOf('a', 'b', 'é', '😀', '1', '2', '1:', '3:a', 'election:', 'limiter:', ...PUNCTUATION)
const number = fc.integer({ min: 1, max: 12 })

const claim: fc.Arbitrary<Claim> = fc.oneof(
  someText.map((key): Claim => ({ key, mode: 'exclusive' })),
  someText.map((key): Claim => ({ key, mode: 'shared' })),
  fc.tuple(someText, number).map(([key, permits]): Claim => ({ key, mode: 'permits', permits, max: 21 })),
  fc.tuple(someText, number).map(([key, max]): Claim => ({ key, mode: 'permits', permits: 1, max })),
)

/** Makes many names, and fails if two different inputs have the same name. Undefined stands for a rejected input. */
function keepsApart<T>(inputs: fc.Arbitrary<T>, nameOf: (input: T) => string | undefined): void {
  const known = new Map<string, string>()
  for (const input of fc.sample(inputs, 20_000)) {
    const name = nameOf(input)
    if (name === undefined) continue
    const text = JSON.stringify(input)
    const earlier = known.get(name)
    if (earlier !== undefined && earlier !== text)
      expect.fail(`${earlier} and ${text} are both named ${name}`)
    known.set(name, text)
  }
  expect(known.size).toBeGreaterThan(100)
}

/** Parses the signature of a claim set. */
function claimsIn(signature: string): Claim[] {
  const claims: Claim[] = []
  for (let rest = signature; rest !== '';) {
    const [head, mode, permits, max, length] = /^(?:([es])|p(\d+)\/(\d+)\/)(\d+):/.exec(rest) ?? []
    if (head === undefined) expect.fail(`${signature} can't be read`)
    const key = rest.slice(head.length, head.length + Number(length))
    claims.push(
      mode === undefined
        ? { key, mode: 'permits', permits: Number(permits), max: Number(max) }
        : { key, mode: mode === 'e' ? 'exclusive' : 'shared' },
    )
    rest = rest.slice(head.length + key.length)
  }
  return claims
}

/** Returns the result of the call, or undefined if the call rejects its input. */
function ifTaken<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}

describe('different inputs have different names', () => {
  test('sets of claims: a signature can be read back', () => {
    const sets = fc.uniqueArray(claim, { minLength: 1, maxLength: 3, selector: ({ key }) => key })
    fc.assert(
      fc.property(sets, claims => {
        const set = claimSet(claims)
        expect(claimsIn(set.signature)).toEqual(set.claims)
      }),
      { numRuns: 2000 },
    )
    const permits = (max: number): Claim => ({ key: 'a', mode: 'permits', permits: 1, max })
    const exclusive = (key: string): Claim => ({ key, mode: 'exclusive' })
    expect(claimSet([permits(2), exclusive('bbx7:ccccccc')]).signature).not.toBe(
      claimSet([permits(21), exclusive('bb'), exclusive('ccccccc')]).signature,
    )
  })

  test('grants of a box', () => {
    keepsApart(fc.tuple(someText, number), ([key, token]) => grantName(key, token))
  })

  test('limiters and their keys', () => {
    keepsApart(fc.tuple(someText, fc.option(someText, { nil: undefined })), ([name, key]) =>
      limiterId(name, key),
    )
  })

  test('locks of keys, elections, limiters', () => {
    const kinds = fc.constantFrom('key', 'election', 'limiter')
    keepsApart(fc.tuple(kinds, someText), ([kind, name]) => {
      if (kind === 'election') return electionKey(name)
      return kind === 'limiter' ? concurrencyKey(name) : ifTaken(() => (checkUnreserved('key', name), name))
    })
  })

  test('store keys', async () => {
    await using box = await open('memory:')
    keepsApart(fc.tuple(someText, someText), ([store, key]) =>
      ifTaken(() => (box.store(store), `${store}/${key}`)),
    )
  })

  test('what is done once', () => {
    const name = textOf('a', 'b', '[', ']', ' ', '"', '["a"]', '["a","b"]', '["[\\"a\\"]"]')
    const sets = fc.uniqueArray(name, { minLength: 1, maxLength: 3 }).map(names => names.sort())
    keepsApart(sets, runsKey)
  })

  test('recorded ids', () => {
    const ids = fc.tuple(someText, someText)
    keepsApart(ids, ([key, id]) => markOf({ key, id }))
  })

  test('keys of Redis', () => {
    const what = fc.constantFrom('held', 'value', 'ids', 'limit', 'numbers', 'queues', 'requests', 'session')
    const text = textOf('a', 'signalbox', ':1:{}:', 'signalbox:1:{}:', 'value:', 'ids:', 'numbers')
    for (const isCluster of [false, true]) {
      keepsApart(fc.tuple(fc.oneof(fc.constant(''), text), what, text), ([prefix, kind, key]) => {
        // The name of a held key is the prefix and the key, because others lock it by that name. So another prefix may
        // give the same name.
        if (!ifTaken(() => redisOptions({ prefix })) || (kind === 'held' && prefix !== '')) return undefined
        const names = new Names(prefix, isCluster)
        if (kind === 'held') return names.isTaken(key) ? undefined : names.held(key)
        if (kind === 'value' || kind === 'ids' || kind === 'limit') return names[kind](key)
        // These names belong to all keys together.
        if (key !== 'a') return undefined
        const group = names.group(key)
        return kind === 'session'
          ? `${group.channels}${key}`
          : group[kind as 'numbers' | 'queues' | 'requests']
      })
    }
  })

  test('rows of PostgreSQL', () => {
    const long = fc
      .tuple(someText, fc.constantFrom(0, 300, 1000))
      .map(([key, times]) => key + 'é'.repeat(times))
    const kinds = fc.constantFrom('lock' as const, 'value' as const, 'limit' as const)
    keepsApart(fc.tuple(kinds, fc.oneof(someText, long)), ([kind, key]) => rowName(kind, key))
  })

  test('nodes of ZooKeeper', () => {
    const kinds = fc.constantFrom('lock' as const, 'value' as const, 'session' as const)
    const paths = new NodePaths('/app')
    keepsApart(fc.tuple(kinds, someText), ([kind, key]) => paths[kind](key))
    fc.assert(fc.property(someText, key => decodeKey(encodeKey(key)) === key))
  })

  test('maps of Hazelcast', () => {
    keepsApart(fc.tuple(textOf('a', 'b', '.table', '.values'), fc.constantFrom(0, 1, 2)), ([map, index]) => {
      const url = `hazelcast://host?map=${encodeURIComponent(map)}`
      return ifTaken(() => mapNames(parseHazelcastUrl(url).map)[index])
    })
  })
})
