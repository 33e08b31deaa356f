import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import { Table } from '../../../../src/engines/hazelcast/table.js'
import {
  decodeTable,
  emptyTable,
  encodeTable,
  marked,
} from '../../../../src/engines/hazelcast/table-record.js'
import { Transactions } from '../../../../src/engines/hazelcast/transactions.js'
import type { Request } from '../../../../src/engine/lock-table.js'
import { pass } from '../../limits/passing.js'

const request: Request = {
  id: 'own.1',
  session: 'own',
  claims: [{ key: 'key', mode: 'exclusive' }],
  phase: 'held',
  expires: 60_000,
  lease: 60_000,
  number: 1,
  label: undefined,
  since: 0,
}

test('a lost reply is looked for as long after a contention of several seconds as without one', async () => {
  const clock = new VirtualClock(1000)
  let text = encodeTable(emptyTable())
  const map = {
    get: () => Promise.resolve(text),
    async replaceIfSame(_key: string, before: string, after: string) {
      if (clock.now() < 8000) {
        await new Promise<void>(resolve => void clock.after(1000, resolve))
        const record = decodeTable(text)
        const mark = { by: 'other', count: clock.now() }
        text = encodeTable({ ...record, turn: record.turn + 1, latest: marked(record.latest, mark) })
        return false
      }
      if (before === text) text = after
      throw new Error('the reply is lost')
    },
  }
  const locks = { tryLock: () => Promise.resolve(false), unlockOnce: () => Promise.resolve() }
  const table = new Table(
    'own',
    () => Promise.resolve(map as never),
    locks as never,
    clock,
    () => undefined,
  )
  const link = { repeat: (work: () => Promise<unknown>) => work() }
  const values = { read: () => Promise.resolve({ entries: new Map(), damaged: new Map() }) }
  const sessions = { extendFor: () => Promise.resolve(), entriesLost: () => undefined }
  const transactions = new Transactions(
    { name: 'test:', map: 'test' } as never,
    link as never,
    table,
    values as never,
    sessions as never,
    clock,
    () => undefined,
  )
  const outcome = transactions.run(state => (state.append({ ...request }), 'done'), {
    type: 'cancel',
    request,
  })
  outcome.catch(() => undefined)
  await pass(clock, 20_000)
  await expect(outcome).resolves.toBe('done')
})
