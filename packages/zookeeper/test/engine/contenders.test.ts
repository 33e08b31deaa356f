import { describe, expect, test } from 'vitest'
import type { Claim } from 'signalbox'
import { contendersOf, hasFollower, positionOf } from '../../src/engine/contenders.js'
import { decodeKey, encodeKey, nodePrefix, readerNames, twinPrefixes } from '../../src/engine/names.js'
import { checkPath } from '../../src/paths.js'
import { Random } from '../../../conformance/src/random.js'

const GUID = '01234567-89ab-cdef-0123-456789abcdef'
const HEX = GUID.replaceAll('-', '')
const exclusive = { key: 'k', mode: 'exclusive' } as const
const shared = { key: 'k', mode: 'shared' } as const
const permits = (count: number, max = 3): Claim => ({ key: 'k', mode: 'permits', permits: count, max })

/** Formats a number as the server does. */
function digits(sequence: number): string {
  const size = String(Math.abs(sequence)).padStart(sequence < 0 ? 9 : 10, '0')
  return sequence < 0 ? `-${size}` : size
}

/** Returns the states of a queue of these claims, oldest first. */
function states(claims: readonly Claim[], first = 0): string[] {
  const names = claims.map((claim, index) => nodePrefix(GUID, claim) + digits((first + index) | 0))
  const contenders = contendersOf([...names].reverse())
  expect(contenders.map(({ name }) => name)).toEqual(names)
  return contenders.map((_, index) => {
    const place = positionOf(contenders, index)
    return place.state === 'blocked' ? place.watch.map(name => names.indexOf(name)).join() : place.state
  })
}

describe('the queue of a key', () => {
  test('permits are granted in order; the first waiter watches all, each later one the one ahead of it', () => {
    expect(states([permits(1), permits(1), permits(2), permits(1), permits(1)])).toEqual([
      'free',
      'free',
      '0,1',
      '2',
      '3',
    ])
    expect(states([permits(3), exclusive, permits(1), permits(1)])).toEqual(['free', '0', '1', '1'])
    expect(states([permits(1), permits(1, 5)])).toEqual(['free', 'mismatch'])
    expect(states([exclusive, permits(1), shared])).toEqual(['free', '0', '1'])
  })

  test('a contender that gets its permits notifies a follower that waits for permits', () => {
    const queue = (claims: readonly Claim[]) =>
      contendersOf(claims.map((claim, index) => nodePrefix(GUID, claim) + digits(index)))
    expect(hasFollower(queue([permits(1), permits(1)]), 0)).toBe(true)
    expect(hasFollower(queue([permits(1), permits(1)]), 1)).toBe(false)
    expect(hasFollower(queue([permits(1), exclusive]), 0)).toBe(false)
    expect(hasFollower(queue([exclusive, exclusive]), 0)).toBe(false)
  })

  test('the order holds when the number wraps around', () => {
    for (const first of [2 ** 31 - 3, 2 ** 31 - 1, -(2 ** 31), -3, -1, -1000])
      expect(states([exclusive, shared, permits(1), exclusive], first)).toEqual(['free', '0', '1', '2'])
  })

  test('names of Curator and kazoo are understood, other children are not contenders', () => {
    const contenders = contendersOf([
      `_c_${GUID}-lock-0000000003`,
      `${HEX}__lock__0000000001`,
      `${HEX}__rlock__0000000002`,
      `_c_${GUID}-__READ__0000000004`,
      `_c_${GUID}-__WRIT__0000000005`,
      `_c_${GUID}-latch-0000000006`,
      'config',
      '0000000000-config',
      'lock-1',
    ])
    expect(contenders.map(({ mode, sequence }) => `${mode} ${sequence}`)).toEqual([
      'exclusive 1',
      'shared 2',
      'exclusive 3',
      'shared 4',
      'exclusive 5',
      'exclusive 6',
    ])
  })

  test('a free contender stays free, and a blocked one is free as soon as those ahead of it are gone', () => {
    const random = new Random(3)
    for (let round = 0; round < 500; round++) {
      const claims = Array.from(
        { length: 1 + random.below(7) },
        () => [exclusive, shared, permits(1), permits(2), permits(3)][random.below(5)]!,
      )
      const now = states(claims)
      expect(states([...claims, exclusive]).slice(0, -1)).toEqual(now)
      expect(now[0]).toBe('free')
      // Only readers, or permits that fit, are granted at the same time. No contender behind a waiter is granted.
      const free = claims.filter((_, index) => now[index] === 'free')
      const taken = free.reduce((sum, claim) => sum + (claim.mode === 'permits' ? claim.permits : 0), 0)
      expect(taken).toBeLessThanOrEqual(3)
      if (free.length > 1) expect(new Set(free.map(({ mode }) => mode)).size).toBe(1)
      if (free.length > 1) expect(free[0]!.mode).not.toBe('exclusive')
    }
  })
})

describe('a node and its twins', () => {
  const guid = (index: number): string => `${String(index).padStart(8, '0')}-89ab-4def-8123-456789abcdef`
  /** Returns the nodes that a bridge creates for a claim in one transaction. */
  const bridged = (claim: Claim, index: number, first: number): [string, string, ...string[]] => {
    const [twin, ...more] = twinPrefixes(guid(index), claim)
    return [
      nodePrefix(guid(index), claim) + digits(first),
      twin! + digits((first + 1) | 0),
      ...more.map(prefix => prefix + digits((first + 2) | 0)),
    ]
  }
  /** Returns the states of a queue in which only some requests are bridged. */
  function mixedStates(claims: readonly Claim[], isBridged: (index: number) => boolean, first = 0): string[] {
    let next = first
    const parties = claims.map((claim, index) => {
      if (!isBridged(index)) return [nodePrefix(guid(index), claim) + digits(next++ | 0)]
      const names = bridged(claim, index, next | 0)
      next += names.length
      return names
    })
    const contenders = contendersOf(parties.flat().reverse())
    expect(contenders.map(({ name, twins }) => [name, ...twins])).toEqual(parties)
    return contenders.map((_, index) => {
      const place = positionOf(contenders, index)
      if (place.state !== 'blocked') return place.state
      expect(place.ahead).toBe(index)
      return place.watch.map(name => parties.findIndex(([leading]) => leading === name)).join()
    })
  }

  test('are one contender: a bridged request has the place that it would have without a bridge', () => {
    const random = new Random(5)
    for (let round = 0; round < 500; round++) {
      const claims = Array.from(
        { length: 1 + random.below(7) },
        () => [exclusive, shared, permits(1), permits(2), permits(3)][random.below(5)]!,
      )
      const chosen = claims.map(() => random.below(3) > 0)
      const first = [0, 2 ** 31 - 4, -4, -(2 ** 31)][random.below(4)]!
      expect(mixedStates(claims, index => chosen[index]!, first)).toEqual(states(claims))
    }
  })

  test('keep their order with kazoo and Curator, which each count one of them', () => {
    const nodes = bridged(exclusive, 1, 4)
    const [node] = nodes
    const [later] = bridged(exclusive, 2, 9)
    const foreign = [`${HEX}__lock__0000000003`, `_c_${GUID}-lock-0000000007`, `${HEX}__lock__0000000008`]
    const contenders = contendersOf([...foreign, ...nodes, later])
    expect(contenders.map(({ name }) => name)).toEqual([foreign[0], node, foreign[1], foreign[2], later])
    expect(positionOf(contenders, 1)).toEqual({ state: 'blocked', watch: [foreign[0]], ahead: 1 })
    expect(positionOf(contenders, 4)).toEqual({ state: 'blocked', watch: [foreign[2]], ahead: 4 })
  })

  test('the rest of a contender still blocks if one of its nodes was deleted', () => {
    const [node, twin, other] = bridged(permits(1), 1, 4) as [string, string, string]
    const behind = nodePrefix(guid(2), permits(1)) + digits(7)
    for (const left of [[twin, other], [twin], [other]]) {
      const contenders = contendersOf([behind, ...left.toReversed()])
      expect(contenders.map(({ name, twins }) => [name, ...twins])).toEqual([left, [behind]])
      expect(positionOf(contenders, 1)).toEqual({ state: 'blocked', watch: left.slice(0, 1), ahead: 1 })
    }
    expect(contendersOf([behind, node]).map(({ name }) => name)).toEqual([node, behind])
  })

  /** Returns the text by which Curator sorts a name if it looks for these words, one after another. */
  const sortedBy = (name: string, ...words: readonly string[]): string =>
    words.reduce(
      (rest, word) => rest.slice(rest.includes(word) ? rest.lastIndexOf(word) + word.length : 0),
      name,
    )

  test('each kind of lock of kazoo and Curator counts exactly one of them by its number', () => {
    for (const claim of [exclusive, shared, permits(2)]) {
      const isShared = claim.mode === 'shared'
      for (const sequence of [7, 2 ** 31 - 1]) {
        const names = bridged(claim, 1, sequence)
        const counted = (pattern: RegExp): number => names.filter(name => pattern.test(name)).length
        expect(counted(/__lock__(-?\d{10})$/)).toBe(isShared ? 0 : 1)
        expect(counted(/__rlock__(-?\d{10})$/)).toBe(isShared ? 1 : 0)
        const isNumber = (rest: string): boolean => /^-?\d{9,10}$/.test(rest)
        const ofMutex = names.map(name => sortedBy(name, 'lock-'))
        expect(ofMutex.filter(isNumber).length).toBe(isShared ? 0 : 1)
        const ofReadWriteLock = names.map(name => sortedBy(name, '__READ__', '__WRIT__'))
        expect(ofReadWriteLock.filter(isNumber).length).toBe(1)
        // The readers of Curator look for these words in the whole name.
        expect(names.filter(name => name.includes('__WRIT__')).length).toBe(isShared ? 0 : 1)
        for (const rest of [...ofMutex, ...ofReadWriteLock])
          expect(isNumber(rest) || rest > digits(2 ** 31 - 1)).toBe(true)
      }
    }
  })

  test('a writer that becomes a reader keeps its numbers, and has no name of a writer any more', () => {
    for (const sequence of [7, 2 ** 31 - 1, -3]) {
      const readers = bridged(shared, 1, sequence)
      expect(readerNames(bridged(exclusive, 1, sequence))).toEqual(readers)
      expect(readerNames(readers)).toEqual(readers)
    }
  })

  test('an earlier release counts the node itself, and no twin that it does not know', () => {
    // The names that an earlier release took for contenders, when a node had one twin.
    const known = /(?:-lock-|__lock__|-__WRIT__|-latch-)(-?\d{9,10})$/
    expect(bridged(exclusive, 1, 4).map(name => known.test(name))).toEqual([true, true, false])
  })
})

describe('keys as node names', () => {
  test('any key has a name that ZooKeeper accepts, and can be decoded from it', () => {
    const keys = [
      'plain',
      'a/b',
      '.',
      '..',
      '../x',
      'a b%20',
      'zug \u{1F682}',
      '\u0001\ue000\ufffd',
      '*?&#',
      'a'.repeat(1024),
    ]
    for (const key of keys) {
      const name = encodeKey(key)
      expect(() => checkPath(`/${name}`)).not.toThrow()
      expect(name).not.toContain('/')
      expect(decodeKey(name)).toBe(key)
    }
    expect(new Set(keys.map(encodeKey)).size).toBe(keys.length)
    expect(encodeKey('orders:42_a-b')).toBe('orders:42_a-b')
    expect(decodeKey('%E0%A4%A')).toBeUndefined()
  })
})
