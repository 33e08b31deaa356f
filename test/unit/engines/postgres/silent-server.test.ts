import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { Calls } from '../../../../src/engines/postgres/calls.js'
import { answered } from '../../../../src/engines/postgres/clients/answered.js'
import type { Query } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Lanes } from '../../../../src/engines/postgres/lanes.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { lockRequest } from '../../../support/lock-request.js'
import { pass } from '../../../support/passing.js'

const member = { session: 's', host: 'h', pid: 1, label: undefined }
const listener = { onNotices: () => undefined, onLost: () => undefined }
const statements = statementsOf('signalbox')

/** Returns a client whose server takes this long for each statement, in milliseconds. Infinity: it never replies. */
function clientOf(timeOf: (text: string) => number, reply: (values: readonly string[]) => string) {
  const clock = new VirtualClock(1_000_000)
  const query: Query = (text, values) => {
    const time = timeOf(text)
    const reached = new Promise<void>(resolve => {
      if (time < Infinity) clock.after(time, resolve)
    })
    return answered(
      reached.then(() => reply(values)),
      clock,
    )
  }
  return { clock, query }
}

test('replies to renewals do not make the callers of operations without replies wait for longer', async () => {
  const { clock, query } = clientOf(
    text => (text === statements.decideOne.text ? 10 : Infinity),
    () => JSON.stringify([[true], [], null]),
  )
  const lanes = new Lanes(new Calls(statements, () => member), query, clock, listener)
  const waits: number[] = []
  const watch = (): void => {
    const since = clock.now()
    lanes.run({ type: 'watch', session: 's', key: 'k' }).catch(() => waits.push(clock.now() - since))
  }
  watch()
  await pass(clock, 100)
  watch()
  const request = lockRequest('s.1', [{ key: 'k', mode: 'exclusive' }])
  for (let at = 0; at < 100; at++) {
    const renewed = lanes.run({ type: 'renew', request, number: 1, lease: 1000 })
    await pass(clock, 100)
    expect(await renewed).toBe(true)
  }
  expect(waits).toEqual([5000, 6900])
})
