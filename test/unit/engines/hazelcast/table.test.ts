import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/clock.js'
import { Table } from '../../../../src/engines/hazelcast/table.js'
import type { TableCell } from '../../../../src/engines/hazelcast/table-cell.js'
import {
  encodeTable,
  marked,
  type Mark,
  type TableRecord,
} from '../../../../src/engines/hazelcast/table-record.js'

/** A cell that never says whether it was changed: consensus may carry out a change twice, and answers the second time. */
class SilentCell implements TableCell {
  text: string | null = null

  async get(): Promise<string | null> {
    return this.text
  }

  async replace(before: string | undefined, after: string): Promise<undefined> {
    if (this.text === (before ?? null)) this.text = after
  }
}

function tableOn(
  cell: TableCell,
  by: string,
  changed: (record: TableRecord, isNext: boolean) => void = () => undefined,
): Table {
  return new Table(by, async () => cell, systemClock, changed)
}

function next(record: TableRecord, mark: Mark): TableRecord {
  return {
    ...record,
    turn: record.turn + 1,
    follows: record.latest.at(-1),
    latest: marked(record.latest, mark),
  }
}

test('a change that the answer tells nothing of is found by its mark, also when others came after it', async () => {
  const cell = new SilentCell()
  const one = tableOn(cell, 'one')
  const other = tableOn(cell, 'other')
  const until = systemClock.now() + 10_000
  const empty = await one.read()
  const first = await one.change(empty, mark => next(empty.record, mark), until)
  expect(first?.text).toBe(cell.text)

  const replace = cell.replace.bind(cell)
  cell.replace = async (before, after) => {
    await replace(before, after)
    cell.replace = replace
    const found = await other.read()
    await other.change(found, mark => next(found.record, mark), until)
    return undefined
  }
  const second = await one.change(first!, mark => next(first!.record, mark), until)
  expect(second?.record.turn).toBe(first!.record.turn + 1)
  expect((await one.read()).record.turn).toBe(first!.record.turn + 2)
})

test('whoever was slower is told so, and knows the newer record', async () => {
  const cell = new SilentCell()
  const one = tableOn(cell, 'one')
  const until = systemClock.now() + 10_000
  const found = await one.read()
  const newer = next(found.record, { by: 'other', count: 1 })
  cell.text = encodeTable(newer)
  expect(await one.change(found, mark => next(found.record, mark), until)).toBeUndefined()
  expect(one.known?.text).toBe(cell.text)
})

test('a record that does not follow the last known one tells that others were missed', async () => {
  const cell = new SilentCell()
  const told: boolean[] = []
  const one = tableOn(cell, 'one', (_, isNext) => told.push(isNext))
  const other = tableOn(cell, 'other')
  const until = systemClock.now() + 10_000
  const change = async (): Promise<string> => {
    const found = await other.read()
    return (await other.change(found, mark => next(found.record, mark), until))!.text!
  }
  await change()
  await one.read()
  told.length = 0
  one.heard(await change())
  one.heard(await change())
  await change()
  one.heard(await change())
  expect(told).toEqual([true, true, false])
})
