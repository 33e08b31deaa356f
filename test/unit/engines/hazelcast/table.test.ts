import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/clock.js'
import { Table, type TableChange } from '../../../../src/engines/hazelcast/table.js'
import {
  decodeTable,
  encodeTable,
  marked,
  type Mark,
  type TableRecord,
} from '../../../../src/engines/hazelcast/table-record.js'

/** A map with the table's record. It applies each valid change, and its reply is lost. */
class SilentMap {
  text: string | null = null

  async get(): Promise<string | null> {
    return this.text
  }

  putIfAbsent = (_key: string, after: string): Promise<never> => this.replace(null, after)
  replaceIfSame = (_key: string, before: string, after: string): Promise<never> => this.replace(before, after)

  async replace(before: string | null, after: string): Promise<never> {
    if (this.text === before) this.text = after
    throw new Error('the answer is lost')
  }
}

function tableOn(
  map: SilentMap,
  by: string,
  changed: (change: TableChange) => void = () => undefined,
): Table {
  return new Table(by, async () => map as never, undefined as never, systemClock, changed)
}

function next(record: TableRecord, mark: Mark): TableRecord {
  return {
    ...record,
    turn: record.turn + 1,
    follows: record.latest.at(-1),
    latest: marked(record.latest, mark),
  }
}

test('a change whose reply was lost is found by its mark, even if other changes came after it', async () => {
  const map = new SilentMap()
  const one = tableOn(map, 'one')
  const other = tableOn(map, 'other')
  const until = systemClock.now() + 10_000
  const empty = await one.read()
  const first = await one.change(empty, mark => next(empty.record, mark), until)
  expect(first?.text).toBe(map.text)

  const replace = map.replace.bind(map)
  map.replace = async (before, after) => {
    map.replace = replace
    const lost = replace(before, after)
    const found = await other.read()
    await other.change(found, mark => next(found.record, mark), until)
    return lost
  }
  const second = await one.change(first!, mark => next(first!.record, mark), until)
  expect(second?.record.turn).toBe(first!.record.turn + 1)
  expect((await one.read()).record.turn).toBe(first!.record.turn + 2)
})

test('a box that was slower gets no record, and learns the newer one', async () => {
  const map = new SilentMap()
  const one = tableOn(map, 'one')
  const until = systemClock.now() + 10_000
  const found = await one.read()
  const newer = next(found.record, { by: 'other', count: 1 })
  map.text = encodeTable(newer)
  expect(await one.change(found, mark => next(found.record, mark), until)).toBeUndefined()
  expect(one.known?.text).toBe(map.text)
})

test('a record that does not follow the last known one shows that others were missed', async () => {
  const map = new SilentMap()
  const followed: boolean[] = []
  const one = tableOn(map, 'one', ({ isNext }) => followed.push(isNext))
  const other = tableOn(map, 'other')
  const until = systemClock.now() + 10_000
  const change = async (): Promise<string> => {
    const found = await other.read()
    return (await other.change(found, mark => next(found.record, mark), until))!.text!
  }
  await change()
  await one.read()
  followed.length = 0
  one.onRecord(await change())
  one.onRecord(await change())
  await change()
  one.onRecord(await change())
  expect(followed).toEqual([true, true, false])
})

/** The calls of a box that has locked the record and changes it, in the order in which the member receives them. */
async function callsOfLocked(isOvertaken: boolean) {
  const map = new SilentMap()
  const calls: string[] = []
  let reply = (): void => undefined
  map.replaceIfSame = async (_key, _before, after) => {
    calls.push('replaceIfSame')
    await new Promise<void>(resolve => (reply = resolve))
    map.text = isOvertaken ? encodeTable(next(decodeTable(map.text!), { by: 'other', count: 1 })) : after
    return !isOvertaken as never
  }
  const locks = {
    tryLock: () => Promise.resolve(calls.push('tryLock') > 0),
    unlockOnce: () => Promise.resolve(calls.push('unlock')),
  }
  const table = new Table(
    'one',
    async () => map as never,
    locks as never,
    systemClock,
    () => undefined,
  )
  map.text = encodeTable(next((await table.read()).record, { by: 'other', count: 0 }))
  const found = await table.read()
  await table.lock()
  const changing = table.change(found, mark => next(found.record, mark), systemClock.now() + 10_000)
  await setImmediate()
  const before = [...calls]
  reply()
  return { table, calls, before, isMade: (await changing) !== undefined }
}

test('a box that has locked the record unlocks it behind its change, without waiting for the reply', async () => {
  const { table, calls, before, isMade } = await callsOfLocked(false)
  expect(before).toEqual(['tryLock', 'replaceIfSame', 'unlock'])
  expect(isMade).toBe(true)
  table.unlock()
  expect(calls).toHaveLength(3)
})

test('a box that has lost its lock before its change locks the record again for the next try', async () => {
  const { table, calls, isMade } = await callsOfLocked(true)
  expect(isMade).toBe(false)
  await table.lock()
  await table.lock()
  expect(calls.slice(3)).toEqual(['tryLock'])
})
