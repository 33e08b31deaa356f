import { expect, test } from 'vitest'
import { decodeKeyEntry, encodeKeyEntry } from '../src/entry-text.js'
import { emptyEntry, marked, wasApplied, type KeyEntry, type Mark } from '../src/key-entry.js'
import { VirtualClock } from 'signalbox/limits'
import { OpenEntry } from '../src/open-entry.js'
import { Sightings } from '../src/sightings.js'

const request = {
  id: 'box.1',
  session: 'box',
  claim: { key: 'k', mode: 'exclusive' },
  phase: 'held',
  ttl: 100,
  heartbeat: 'one.1',
  lease: 100,
  number: 7,
  since: 3,
} as const

const full: KeyEntry = {
  stamp: 12,
  version: 11,
  ids: [[',"value":', 99]],
  value: '{"value":",\\"value\\":"}',
  locks: {
    turn: 5,
    number: 7,
    marks: [{ by: 'one', count: 1 }],
    requests: [
      { ...request, label: ',"value":', set: undefined },
      {
        ...request,
        id: 'box.2',
        claim: { key: 'k', mode: 'shared' },
        phase: 'here',
        label: undefined,
        set: { others: [{ key: 'value', mode: 'permits', permits: 2, max: 3 }], overwritten: [['value', 4]] },
      },
      { ...request, id: 'box.3', session: 'other', label: undefined, set: { home: 'value' } },
    ],
    ended: ['box.0'],
    decided: [
      {
        id: 'box.9',
        number: 3,
        changes: [
          { key: 'value', write: { version: 4, value: '{"value":1}' }, ids: [['id', 5]] },
          { key: 'gone', write: { version: 5, value: undefined }, ids: [] },
          { key: 'read', write: undefined, ids: [] },
        ],
      },
    ],
    isAwaited: true,
  },
}

test('an entry survives its text, whatever its keys, ids, labels and values are', () => {
  for (const [at, value] of [full.value, undefined, '1', '"text"'].entries()) {
    const entry = { ...full, value, locks: { ...full.locks, isAwaited: at % 2 === 0 } }
    expect(decodeKeyEntry('k', encodeKeyEntry(entry))).toEqual(entry)
  }
})

test('other texts are refused', () => {
  for (const text of [
    'hello',
    '7',
    'null',
    '{}',
    '{"stamp":1,"version":1,"ids":{"some":1}}',
    '{"stamp":1,"version":1,"ids":[],"lock":[1]}',
  ])
    expect(() => decodeKeyEntry('k', text), text).toThrow()
})

test('the marks show whether a change was applied, as long as they are whole', () => {
  const mark = (by: string, count: number): Mark => ({ by, count })
  const before = emptyEntry().locks
  const after = (marks: readonly Mark[], turns: number) => ({ ...before, turn: before.turn + turns, marks })
  expect(wasApplied(after([mark('one', 3)], 1), mark('one', 3), before)).toBe(true)
  expect(wasApplied(after([mark('one', 2)], 1), mark('one', 3), before)).toBe(false)
  expect(wasApplied(after([mark('two', 1)], 1), mark('one', 3), before)).toBe(false)
  let many: Mark[] = [mark('one', 3)]
  for (let other = 0; other < 12; other++) many = marked(many, mark(`other-${other}`, 1))
  expect(wasApplied(after(many, 13), mark('one', 3), before)).toBeUndefined()
  expect(wasApplied(after(many, 12), mark('one', 3), before)).toBe(false)
})

test('a home that is removed leaves a mark, so that its set never stands there again', () => {
  const clock = new VirtualClock(1000)
  const sightings = new Sightings()
  sightings.see(full.locks.requests, 1000)
  const signs = { isCovered: () => false, seen: () => -Infinity }
  const grants = { renewedAt: () => -Infinity, hasEnded: () => true }
  const open = () =>
    new OpenEntry(
      'k',
      full,
      { sightings, signs, grants, isAwaited: () => undefined, nextVersion: above => above + 1 },
      clock,
    )
  const removed = open()
  removed.remove(removed.part('box.2')!)
  expect(removed.hasEnded('box.2')).toBe(true)
  expect(removed.isAwaited).toBe(true)
  const withdrawn = open()
  withdrawn.withdraw('box.2')
  expect(withdrawn.hasEnded('box.2')).toBe(false)
  const pointer = open()
  pointer.remove(pointer.part('box.3')!)
  expect(pointer.hasEnded('box.3')).toBe(false)
})

test('a renewal has a heartbeat of its own, also at the moment in which its box sees the request first', () => {
  const clock = new VirtualClock(1000)
  const sightings = new Sightings()
  const signs = { isCovered: () => false, seen: () => -Infinity }
  const grants = { renewedAt: () => -Infinity, hasEnded: () => true }
  sightings.see(full.locks.requests, 1000)
  const context = {
    ...{ sightings, signs, grants },
    isAwaited: () => undefined,
    nextVersion: (above: number) => above + 1,
  }
  const state = new OpenEntry('k', full, context, clock)
  for (const before of full.locks.requests) {
    const request = state.request(before.id)!
    // Other boxes may have seen the request long before.
    request.expires = 1000 + before.ttl
    state.changed(request)
  }
  const renewed = state.close({ by: 'box', count: 99 }).locks.requests
  for (const { set, heartbeat } of renewed) if (!set || !('home' in set)) expect(heartbeat).toBe('box.99')
})
