import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { Calls } from '../../../../src/engines/postgres/calls.js'
import { answered } from '../../../../src/engines/postgres/clients/answered.js'
import { LaneQuery } from '../../../../src/engines/postgres/clients/lane-query.js'
import { Repetition } from '../../../../src/engines/postgres/clients/repetition.js'
import { SqlError, type Query } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Lanes } from '../../../../src/engines/postgres/lanes.js'
import { Limiters } from '../../../../src/engines/postgres/limiters.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { lockRequest } from '../../../support/lock-request.js'
import { pass } from '../../../support/passing.js'
import { LimiterRows } from './limiter-rows.js'

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

/**
 * Runs statements one after another, with a pause in between, for callers that have waited.
 * @returns their outcomes
 */
async function outcomes(
  waited: number,
  times: readonly number[],
  { reply = (): string => 'done', pause = 0 } = {},
): Promise<string[]> {
  const left = [...times]
  const { clock, query } = clientOf(() => left.shift()!, reply)
  const lane = new LaneQuery(query, clock)
  const found: string[] = []
  for (const _ of times) {
    const repetition = new Repetition(new VirtualClock(clock.now() - waited))
    const sentAt = clock.now()
    const outcome = lane
      .for([repetition])('select 1', [])
      .then(
        () => 'done',
        ({ message }: Error) => message,
      )
    const ended = outcome.then(text => found.push(`${text}, ${clock.now() - sentAt} ms`))
    const state = { isOver: false }
    void ended.then(() => (state.isOver = true))
    while (!state.isOver) await pass(clock, 100)
    await pass(clock, pause)
  }
  return found
}

test('a statement after one without a reply ends in time for its caller', async () => {
  const silent = [Infinity, Infinity, Infinity]
  const none = 'no answer within'
  expect(await outcomes(1500, silent)).toEqual([
    `${none} 5000 ms, 5000 ms`,
    `${none} 3500 ms, 3500 ms`,
    `${none} 3500 ms, 3500 ms`,
  ])
  expect((await outcomes(5000, silent)).at(-1)).toBe(`${none} 2000 ms, 2000 ms`)
})

test.each([
  ['answers', () => 'done', 'done, 4000 ms'],
  [
    'answers with an error',
    (): never => {
      throw new SqlError('canceled', '57014', false, undefined)
    },
    'canceled, 4000 ms',
  ],
])(
  'a server that %s late gets the whole time again, for the running statement, too',
  async (_, reply, outcome) => {
    expect((await outcomes(5000, [6000, 3500, 4000, 4000], { reply })).slice(1)).toEqual([
      'no answer within 2000 ms, 2000 ms',
      outcome,
      outcome,
    ])
  },
)

test('a statement that was given up, and has no reply, does not count after a later reply', async () => {
  // The client rejects the second statement between the third and the fourth.
  const found = await outcomes(5000, [Infinity, Infinity, 500, 4000], { pause: 2000 })
  expect(found.slice(2)).toEqual(['done, 500 ms', 'done, 4000 ms'])
})

/** Calls every 500 ms for a minute. @returns the number of failures among the last calls */
async function failuresOf(clock: VirtualClock, call: () => Promise<unknown>): Promise<number> {
  let failed = 0
  for (let at = 0; at < 120; at++) {
    call().catch(() => at > 60 && failed++)
    await pass(clock, 500)
  }
  await pass(clock, 20_000)
  return failed
}

test('operations on a server that is slow for longer than their time succeed as soon as it answers in time', async () => {
  let time = 6000
  const { clock, query } = clientOf(
    () => time,
    () => JSON.stringify([Array<boolean>(50).fill(true), [], null]),
  )
  const lanes = new Lanes(new Calls(statements, () => member), query, clock, listener)
  clock.after(8000, () => (time = 4000))
  expect(await failuresOf(clock, () => lanes.run({ type: 'watch', session: 's', key: 'k' }))).toBe(0)
})

test('permits of a server that is slow for longer than their time are given as soon as it answers in time', async () => {
  let time = 6000
  const { clock, query } = clientOf(
    () => time,
    values => rows.decide(values),
  )
  const rows = new LimiterRows(clock)
  const limiters = new Limiters(query, statements, clock)
  clock.after(8000, () => (time = 4000))
  const request = {
    limiter: 'api',
    session: 's',
    windows: [],
    units: [],
    horizon: 10_000,
    hold: 1000,
    returns: [],
    pause: undefined,
    explain: undefined,
  }
  expect(await failuresOf(clock, () => limiters.reservePermits(request))).toBe(0)
})

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
