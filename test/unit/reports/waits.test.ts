import { expect, test } from 'vitest'
import { cyclesOf, waitsOf } from '../../../src/reports/index.js'
import { graphTable } from '../../../src/cli/graph.js'
import { overview } from '../../../src/cli/top.js'
import type { Claim, LockReport, Party } from '../../../src/index.js'

function party(session: string, claim: Claim, token?: bigint): Party {
  return { session, host: 'vm', pid: 7, label: session, claim, token, age: 1000, expiresIn: 2000 }
}

function exclusive(key: string, holder: string, ...waiters: string[]): LockReport {
  const claim: Claim = { key, mode: 'exclusive' }
  return {
    key,
    holders: [party(holder, claim, 1024n)],
    waiters: waiters.map(session => party(session, claim)),
  }
}

function pairs(reports: readonly LockReport[]): string[] {
  return waitsOf(reports).map(
    ({ waiter, blocker, holds }) => `${waiter.session} ${holds ? 'for' : 'behind'} ${blocker.session}`,
  )
}

test('each waits for the holder, and for the waiter before it', () => {
  expect(pairs([exclusive('k', 'a', 'b', 'c')])).toEqual(['b for a', 'c for a', 'c behind b'])
  expect(pairs([exclusive('k', 'a')])).toEqual([])
})

test('readers do not wait for readers that hold, and permits only when there are not enough', () => {
  const shared: Claim = { key: 'k', mode: 'shared' }
  const writer = party('w', { key: 'k', mode: 'exclusive' })
  expect(
    pairs([{ key: 'k', holders: [party('a', shared, 1n)], waiters: [writer, party('b', shared)] }]),
  ).toEqual(['w for a', 'b behind w'])
  const permits = (count: number): Claim => ({ key: 'k', mode: 'permits', permits: count, max: 4 })
  const holders = [party('a', permits(2), 1n), party('b', permits(1), 2n)]
  expect(pairs([{ key: 'k', holders, waiters: [party('c', permits(2))] }])).toEqual(['c for a', 'c for b'])
  expect(pairs([{ key: 'k', holders, waiters: [party('c', permits(1))] }])).toEqual([])
})

test('cycles are found, each once, and chains are not cycles', () => {
  const chain = [exclusive('1', 'a', 'b'), exclusive('2', 'b', 'c'), exclusive('3', 'a', 'c')]
  expect(cyclesOf(waitsOf(chain))).toEqual([])
  const cycle = [...chain, exclusive('4', 'c', 'a'), exclusive('5', 'd', 'a')]
  const [found, ...others] = cyclesOf(waitsOf(cycle))
  expect(others).toEqual([])
  expect(found).toContain('a')
  expect(found).toContain('c')
  // A session that waits for itself may have two independent tasks.
  expect(cyclesOf(waitsOf([exclusive('1', 'a', 'a')]))).toEqual([])
  expect(graphTable(waitsOf([exclusive('1', 'a', 'b'), exclusive('2', 'b', 'a')]))).toMatch(
    /\ncycle, possibly a deadlock: (a -> b -> a|b -> a -> b)\n$/,
  )
})

test('sessions whose tasks queue in different orders for keys of a third one are not in a cycle', () => {
  const queued = [exclusive('1', 'c', 'a', 'b'), exclusive('2', 'c', 'b', 'a')]
  expect(cyclesOf(waitsOf(queued))).toEqual([])
  expect(graphTable(waitsOf(queued))).not.toContain('cycle')
  // A reader behind a writer waits for it alone.
  const shared: Claim = { key: '1', mode: 'shared' }
  const behind = {
    key: '1',
    holders: [party('c', shared, 1n)],
    waiters: [party('writer', { key: '1', mode: 'exclusive' }), party('a', shared)],
  }
  expect(cyclesOf(waitsOf([behind, exclusive('2', 'a', 'writer')]))).toHaveLength(1)
})

test('the overview starts with the key that most wait for, and shows control characters', () => {
  const reports = [
    exclusive('quiet', 'a'),
    exclusive('busy', 'a', 'b', 'c'),
    exclusive('a\u001b[2J', 'a', 'b'),
  ]
  const lines = overview(reports)
  expect(lines[0]).toBe('keys in use: 3, holders: 3, waiters: 3\n')
  expect(lines.slice(2).map(line => line.split(/ {2,}/).slice(0, 2))).toEqual([
    ['busy', expect.stringMatching(/^ *2$/)],
    ['a\\u001b[2J', expect.stringMatching(/^ *1$/)],
    ['quiet', expect.stringMatching(/^ *0$/)],
  ])
})
