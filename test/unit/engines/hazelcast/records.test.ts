import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import { OpenTable } from '../../../../src/engines/hazelcast/open-table.js'
import { Sightings } from '../../../../src/engines/hazelcast/sightings.js'
import { KnownEntries } from '../../../../src/engines/hazelcast/known-entries.js'
import {
  decodeTable,
  emptyTable,
  encodeTable,
  rangeOf,
  marked,
  wasApplied,
  type Mark,
  type RequestRecord,
  type TableRecord,
} from '../../../../src/engines/hazelcast/table-record.js'
import { decodeEntry, encodeEntry, stampOf } from '../../../../src/engines/hazelcast/value-entry.js'

test('an entry is decoded as it was encoded, with any IDs and any value', () => {
  const tricky = ['"value":', ',"value":', '\\",\\"value\\":', '{"value":1}', ',']
  for (const text of tricky) {
    const entry = { stamp: 7, version: 6, ids: [[text, 5]] as const, value: JSON.stringify({ value: text }) }
    expect(decodeEntry(encodeEntry(entry))).toEqual(entry)
    expect(stampOf(encodeEntry(entry))).toBe(7)
    expect((JSON.parse(encodeEntry(entry)) as { value: unknown }).value).toEqual({ value: text })
    const deleted = { ...entry, value: undefined }
    expect(decodeEntry(encodeEntry(deleted))).toEqual(deleted)
  }
})

/** A record after a number of changes of `before`, with these marks. */
function later(before: TableRecord, changes: number, latest: readonly Mark[]): TableRecord {
  return { ...before, turn: before.turn + changes, latest }
}

test('whether a change was applied is known while the marks of all later boxes exist', () => {
  const boxes = Array.from({ length: 50 }, (_, index) => ({ by: `box ${index}`, count: 7 }))
  const many = boxes.reduce<Mark[]>(marked, [])
  expect(many).toHaveLength(32)
  const before = { ...emptyTable(), latest: many }
  expect(wasApplied(later(before, 3, many), { by: 'box 49', count: 7 }, before)).toBe(true)
  expect(wasApplied(later(before, 3, many), { by: 'box 49', count: 8 }, before)).toBe(false)
  const ours = { by: 'ours', count: 1 }
  expect(wasApplied(later(before, 32, many), ours, before)).toBe(false)
  expect(wasApplied(later(before, 33, many), ours, before)).toBeUndefined()
  // In a new place, all boxes that ever existed have a mark.
  expect(wasApplied(later(before, 40, boxes.slice(0, 2)), ours, before)).toBe(false)
  // The cluster has lost the record, and the marks with it.
  expect(wasApplied(emptyTable(), ours, before)).toBeUndefined()
})

test('a box has one mark, that of its latest change', () => {
  const latest = ['a', 'b', 'a'].map((by, index) => ({ by, count: index })).reduce<Mark[]>(marked, [])
  expect(latest).toEqual([
    { by: 'b', count: 1 },
    { by: 'a', count: 2 },
  ])
})

const request: RequestRecord = {
  id: 'a.1',
  session: 'a',
  claims: [
    { key: 'one', mode: 'exclusive' },
    { key: 'two', mode: 'shared' },
    { key: '["three"]\n', mode: 'permits', permits: 2, max: 5 },
  ],
  phase: 'held',
  ttl: 100,
  heartbeat: 'box.1',
  lease: 200,
  number: 7,
  label: undefined,
  since: 8,
}

test('a record is decoded as it was encoded, and begins with the box that made it', () => {
  const record: TableRecord = {
    ...emptyTable(),
    follows: { by: 'c0ffee', count: 3 },
    latest: [
      { by: 'decade', count: 9 },
      { by: 'facade', count: 4 },
    ],
    requests: [request, { ...request, id: 'b.1', session: 'b', phase: 'waiting', label: '"\n' }],
    pending: { 's/"key"\n': '{"value":"\n\u00e4\u{1f682}"}', 's/other': '{}' },
  }
  const text = encodeTable(record)
  expect(decodeTable(text)).toEqual(record)
  for (const [by, isWithin] of [
    ['facade', true],
    ['facad', false],
    ['facade0', false],
    ['decade', false],
  ] as const) {
    const [from, to] = rangeOf(by)
    expect(from <= text && text <= to, by).toBe(isWithin)
  }
  const first = emptyTable()
  expect(decodeTable(encodeTable(first))).toEqual(first)
})

test('a TTL counts from the first sighting of a heartbeat, not from later ones', () => {
  const sightings = new Sightings()
  const see = (heartbeat: string, now: number): number => {
    sightings.see({ ...emptyTable(), requests: [{ ...request, heartbeat }] }, now)
    return sightings.expiry({ ...request, heartbeat })
  }
  expect(see('a', 1000)).toBe(1100)
  expect(see('a', 1050)).toBe(1100)
  expect(see('b', 1080)).toBe(1180)
  sightings.markDead({ ...request, heartbeat: 'b' })
  expect(see('b', 1090)).toBe(-Infinity)
  expect(see('c', 1095)).toBe(1195)
})

test('a change leaves out a request that expired a minute ago, and one whose session died', () => {
  const clock = new VirtualClock(0)
  const requests = ['a.1', 'b.1', 'c.1'].map(id => ({ ...request, id }))
  const record = { ...emptyTable(), requests }
  const sightings = new Sightings()
  sightings.see(record, 0)
  sightings.markDead(requests[1]!)
  const left = (): string[] => {
    const none = new Map<string, never>()
    const context = { sightings, floor: 0, entries: none, sessions: none, writtenBack: none }
    return new OpenTable(record, context, clock).close({ by: 'box', count: 1 }).requests.map(({ id }) => id)
  }
  expect(left()).toEqual(['a.1', 'c.1'])
  clock.advance(request.ttl + 59_999)
  expect(left()).toEqual(['a.1', 'c.1'])
  clock.advance(1)
  expect(left()).toEqual([])
})

/** The record after a change that commits these entries, instead of the pending ones. */
function changed(before: TableRecord, count: number, pending: Record<string, number>): TableRecord {
  const mark = { by: 'box', count }
  return {
    ...before,
    turn: before.turn + 1,
    version: Math.max(before.version, ...Object.values(pending)),
    follows: before.latest.at(-1),
    latest: [mark],
    pending: Object.fromEntries(Object.entries(pending).map(([key, stamp]) => [key, entry(stamp)])),
  }
}

function entry(stamp: number): string {
  return encodeEntry({ stamp, version: stamp, ids: [], value: '1' })
}

test('entries are known as long as no record is missed', () => {
  const known = new KnownEntries()
  const first = changed({ ...emptyTable(), version: 0 }, 1, {})
  known.follow(first)
  known.add(new Map([['read', undefined]]), known.epoch)
  const second = changed(first, 2, { written: 5 })
  known.follow(second)
  expect(known.get('written')).toBe(entry(5))
  expect([known.has('read'), known.get('read')]).toEqual([true, undefined])
  // An entry that is read late is older than one that was followed.
  known.add(new Map([['written', entry(4)]]), known.epoch)
  const third = changed(second, 3, { read: 7, written: 5 })
  const { epoch } = known
  known.follow(third)
  expect([known.get('read'), known.get('written')]).toEqual([entry(7), entry(5)])
  // A missed record may have written anything.
  known.follow(changed(changed(third, 4, {}), 5, {}))
  expect([known.has('read'), known.has('written')]).toEqual([false, false])
  known.add(new Map([['read', entry(7)]]), epoch)
  expect(known.has('read')).toBe(false)
})
