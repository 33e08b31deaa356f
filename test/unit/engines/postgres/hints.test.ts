import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import type { SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Hints } from '../../../../src/engines/postgres/hints.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { pass } from '../../../support/passing.js'

const LISTENS = '["signalbox other","signalbox s"]'

/** Creates the hints of a listening box, whose server delivers each message at once. */
async function listening({ wants = true } = {}) {
  const clock = new VirtualClock(1_000_000)
  const counts = { listened: 0, stopped: 0, notified: 0, checked: 0, missed: 0 }
  const network = { delivers: true, reply: (): Promise<string> => Promise.resolve(LISTENS) }
  let deliver: (message: string) => void = () => undefined
  const sql = {
    query: () => {
      counts.notified++
      if (network.delivers) deliver('test')
      return Promise.resolve('')
    },
    listen: (channel: string, onMessage: (message: string, channel: string) => void) => {
      counts.listened++
      deliver = message => onMessage(message, channel)
      return Promise.resolve({
        query: () => {
          counts.checked++
          return network.reply()
        },
        run: () => Promise.resolve(),
        stop: () => {
          counts.stopped++
          return Promise.resolve()
        },
      })
    },
  } as Partial<SqlClient> as SqlClient
  const receiver = { onHint: () => undefined, onMissed: () => counts.missed++, wantsHints: () => wants }
  const hints = new Hints(sql, statementsOf('signalbox'), receiver, clock)
  hints.open('s')
  hints.start()
  await pass(clock, 100)
  expect(hints.isReceiving).toBe(true)
  expect(counts).toEqual({ listened: 1, stopped: 0, notified: 1, checked: 0, missed: 1 })
  return { clock, counts, network, hints }
}

/** Returns a function that replies after some time. */
const after = (clock: VirtualClock, time: number) => () =>
  new Promise<string>(resolve => clock.after(time, () => resolve(LISTENS)))

test('a box that receives hints sends itself no messages, and asks its connection while it has a use for them', async () => {
  const { clock, counts, hints } = await listening()
  await pass(clock, 60_000)
  expect(hints.isReceiving).toBe(true)
  expect(counts).toMatchObject({ listened: 1, notified: 1, missed: 1 })
  expect(counts.checked).toBeGreaterThan(30)
})

test('a session that no longer listens is replaced, and several messages must arrive before a box relies on it', async () => {
  const { clock, counts, network, hints } = await listening()
  network.reply = () => Promise.resolve('[]')
  await pass(clock, 1500)
  expect(hints.isReceiving).toBe(false)
  expect(counts).toMatchObject({ listened: 2, stopped: 1 })
  network.reply = () => Promise.resolve(LISTENS)
  await pass(clock, 3000)
  expect(hints.isReceiving).toBe(true)
  expect(counts).toMatchObject({ listened: 2, notified: 4 })
})

test('a connection that answers slowly is kept, and its box polls meanwhile', async () => {
  const { clock, counts, network, hints } = await listening()
  network.reply = after(clock, 3000)
  await pass(clock, 3500)
  expect(hints.isReceiving).toBe(false)
  const { missed } = counts
  await pass(clock, 1500)
  expect(hints.isReceiving).toBe(true)
  expect(counts).toMatchObject({ listened: 1, notified: 1, missed: missed + 1 })
})

test('a connection that does not answer is replaced', async () => {
  const { clock, counts, network, hints } = await listening()
  network.reply = after(clock, Infinity)
  await pass(clock, 2600)
  expect(hints.isReceiving).toBe(false)
  expect(counts).toMatchObject({ listened: 1, stopped: 0 })
  await pass(clock, 4000)
  expect(counts).toMatchObject({ listened: 2, stopped: 1 })
})
