import { afterEach, expect, test, vi } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import type { EntryStore } from '../src/entry-store.js'
import { encodeKeyEntry } from '../src/entry-text.js'
import { Floor } from '../src/floor.js'
import { FreeEntries } from '../src/free-entries.js'
import { emptyEntry, type KeyEntry } from '../src/key-entry.js'
import { pass } from '../../../test/support/passing.js'

const HOUR = 3_600_000

afterEach(() => void vi.restoreAllMocks())

function freeEntries() {
  const clock = new VirtualClock()
  vi.spyOn(Date, 'now').mockImplementation(() => 1_800_000_000_000 + clock.now())
  const removed: string[] = []
  const left: number[] = []
  const unused = (): Promise<never> => Promise.reject(new Error('not used'))
  const store: EntryStore = {
    get: unused,
    add: unused,
    replace: unused,
    remove: async key => void removed.push(key),
  }
  const floor = new Floor({ ...store, get: async () => undefined, add: async () => undefined }, clock)
  const free = new FreeEntries(
    store,
    floor,
    clock,
    () => undefined,
    () => left.push(clock.now()),
  )
  const see = (key: string, entry: KeyEntry): void => free.see(key, { text: encodeKeyEntry(entry), entry })
  return { clock, free, see, removed, left }
}

test('a free entry is deleted, unless it is used again before', async () => {
  const { clock, see, removed } = freeEntries()
  const entry = emptyEntry()
  see('k', entry)
  see('used', entry)
  await pass(clock, 15_000)
  see('used', { ...entry, value: '1' })
  await pass(clock, 90_000)
  expect(removed).toEqual(['k'])
})

test('other boxes are notified to check an entry without a value once its IDs expire', async () => {
  const { clock, free, see, left } = freeEntries()
  const until = Date.now() + HOUR
  see('k', { ...emptyEntry(), ids: [['id', until]] })
  see('other', { ...emptyEntry(), value: '1', ids: [['id', until - HOUR / 2]] })
  await pass(clock, HOUR - 1)
  expect(left).toEqual([])
  await pass(clock, 60_000)
  expect(left).toHaveLength(1)
  free.end()
})
