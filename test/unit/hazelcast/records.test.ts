import { expect, test } from 'vitest'
import { Sightings } from '../../../src/engines/hazelcast/sightings.js'
import {
  emptyTable,
  marked,
  wasMade,
  type RequestRecord,
  type TableRecord,
} from '../../../src/engines/hazelcast/table-record.js'
import { decodeEntry, encodeEntry } from '../../../src/engines/hazelcast/value-entry.js'

test('an entry is read as it was written, whatever its ids and its value contain', () => {
  const tricky = ['"value":', ',"value":', '\\",\\"value\\":', '{"value":1}', ',']
  for (const text of tricky) {
    const entry = { stamp: 7, version: 6, ids: [[text, 5]] as const, value: JSON.stringify({ value: text }) }
    expect(decodeEntry(encodeEntry(entry))).toEqual(entry)
    expect((JSON.parse(encodeEntry(entry)) as { value: unknown }).value).toEqual({ value: text })
    const deleted = { ...entry, value: undefined }
    expect(decodeEntry(encodeEntry(deleted))).toEqual(deleted)
  }
})

/** A record after so many changes of `before`, with these marks. */
function later(before: TableRecord, changes: number, recent: readonly string[]): TableRecord {
  return { ...before, turn: before.turn + changes, recent }
}

test('a change is known to be made, or not to be, as long as the marks since are all there', () => {
  const many = Array.from({ length: 50 }, (_, index) => `mark ${index}`).reduce<string[]>(marked, [])
  expect(many).toHaveLength(32)
  const before = { ...emptyTable(), recent: many }
  expect(wasMade(later(before, 3, many), 'mark 49', before)).toBe(true)
  expect(wasMade(later(before, 32, many), 'ours', before)).toBe(false)
  expect(wasMade(later(before, 33, many), 'ours', before)).toBeUndefined()
  // A place where nobody was before: all marks that ever were are there.
  expect(wasMade(later(before, 40, ['a', 'b']), 'ours', before)).toBe(false)
  // What was there is lost, and so is what could tell.
  expect(wasMade(emptyTable(), 'ours', before)).toBeUndefined()
})

test('a life is counted from the first sight of what was heard, not from later ones', () => {
  const sightings = new Sightings()
  const request = { id: 'a', beat: 1, life: 100 } as RequestRecord
  const see = (beat: number, now: number): number => {
    sightings.see({ ...emptyTable(), requests: [{ ...request, beat }] }, now)
    return sightings.expiry({ ...request, beat })
  }
  expect(see(1, 1000)).toBe(1100)
  expect(see(1, 1050)).toBe(1100)
  expect(see(2, 1080)).toBe(1180)
  sightings.isOver({ ...request, beat: 2 })
  expect(see(2, 1090)).toBe(-Infinity)
  expect(see(3, 1095)).toBe(1195)
})
