import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import type { PermitReservation } from '../../../../src/engine/contract.js'
import type { ReservePermits } from '../../../../src/engine/limits/reservation.js'
import { SqlError, type SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Limiters, sharedLimiters } from '../../../../src/engines/postgres/limiters.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { pass } from '../../../support/passing.js'
import { LimiterRows } from './limiter-rows.js'

const HOUR = 3_600_000

/** Returns a request for a permit, with a limit of this many in an hour. */
function perHour(limit: number, session = 'box', more: Partial<ReservePermits> = {}): ReservePermits {
  return {
    limiter: 'api',
    session,
    windows: [{ kind: 'sliding', limit, per: HOUR, hold: 1000, guard: 1000, timeZone: '' }],
    units: [{ n: 1, more: 0, within: Infinity }],
    horizon: 10_000,
    hold: 1000,
    returns: [],
    pause: undefined,
    explain: undefined,
    ...more,
  }
}

/** Creates boxes on one server. */
function scene() {
  const clock = new VirtualClock(1_000_000)
  const rows = new LimiterRows(clock)
  let isLost = false
  /** Loses the next reply. */
  const lose = (): void => void (isLost = true)
  /** Number of statements that each box has sent. */
  const sent: number[] = []
  /**
   * Returns the limiters of a box with this one-way delay, in milliseconds.
   * @param failing errors of its next statements
   */
  const box = (way: number | (() => number), failing: (Error | undefined)[] = []): Limiters => {
    const number = sent.push(0) - 1
    const travel = (): Promise<void> =>
      new Promise(resolve => clock.after(typeof way === 'number' ? way : way(), resolve))
    const query = async (_: string, values: readonly string[]): Promise<string> => {
      sent[number]!++
      await travel()
      const error = failing.shift()
      if (error) throw error
      const answer = rows.decide(values)
      await travel()
      if (isLost) {
        isLost = false
        throw new SqlError('the connection was lost', undefined, true, undefined)
      }
      return answer
    }
    return new Limiters(query, statementsOf('signalbox'), clock)
  }
  /** Advances the time until the promise settles. */
  const answers = async <T>(promise: Promise<T>): Promise<T> => {
    const state = { isOver: false }
    const over = (): void => void (state.isOver = true)
    promise.then(over, over)
    for (let passed = 0; !state.isOver && passed < 60_000; passed++) await pass(clock, 1)
    return promise
  }
  /** Makes a box decide every few milliseconds from now on. The returned function stops it. */
  const busy = (limiters: Limiters, every: number): (() => void) => {
    const state = { isOver: false }
    const work = async (): Promise<void> => {
      while (!state.isOver) {
        await limiters.reservePermits(perHour(1_000_000, 'near', { units: [] }))
        await new Promise<void>(resolve => clock.after(every, resolve))
      }
    }
    void work()
    return () => void (state.isOver = true)
  }
  return { clock, rows, sent, box, lose, answers, busy }
}

const given = ({ reserved }: PermitReservation): number => reserved.units.reduce((sum, { n }) => sum + n, 0)

test('a decision that arrives too late is made again, and counts once', async () => {
  const { answers, box, rows } = scene()
  let way = 0
  const limiters = box(() => way)
  // With its first call, the box learns the server's clock.
  await answers(limiters.reservePermits(perHour(1, 'box', { units: [] })))
  way = 2000
  const before = rows.outdated
  const asked = answers(limiters.reservePermits(perHour(1)))
  expect(given(await asked)).toBe(1)
  expect(rows.outdated).toBeGreaterThan(before)
  way = 0
  expect(given(await answers(limiters.reservePermits(perHour(1))))).toBe(0)
})

test('a decision whose call failed is not counted by the next one', async () => {
  const failed = new SqlError('the connection is lost', undefined, false, undefined)
  const { answers, box } = scene()
  const limiters = box(0, [undefined, undefined, failed])
  await answers(limiters.reservePermits(perHour(1, 'box', { units: [] })))
  await expect(answers(limiters.reservePermits(perHour(1)))).rejects.toBe(failed)
  expect(given(await answers(limiters.reservePermits(perHour(1))))).toBe(1)
})

test('a decision whose reply was lost is made again, but takes no permit back twice', async () => {
  const { answers, box, lose } = scene()
  const limiters = box(0)
  const two = perHour(2, 'box', { units: [{ n: 2, more: 0, within: Infinity }] })
  const { at } = (await answers(limiters.reservePermits(two))).reserved.units[0]!
  lose()
  // Returns one of the two permits. If the return counted twice, both would be free.
  await answers(limiters.reservePermits({ ...two, units: [], returns: [{ n: 1, at, from: at }] }))
  expect(given(await answers(limiters.reservePermits(two)))).toBe(0)
})

// With 300 ms, the near box decides once between two statements of the distant box, and that decision includes the
// request of the distant box.
test.each([5, 300])(
  'a distant box gets its answer with its second statement while a near one decides every %i ms',
  async every => {
    const { clock, answers, box, busy, sent, rows } = scene()
    const stop = busy(box(1), every)
    const far = box(200)
    await answers(far.reservePermits(perHour(1_000_000, 'far')))
    for (let round = 0; round < 10; round++) {
      const [before, start] = [sent[1]!, clock.now()]
      const answer = await answers(far.reservePermits(perHour(1_000_000, 'far')))
      expect(given(answer)).toBe(1)
      expect(sent[1]! - before).toBe(2)
      expect(clock.now() - start).toBeLessThan(820)
      // The near box decided the request after the first statement of the distant box.
      expect(answer.latest - start).toBeGreaterThan(200)
      expect(answer.earliest - start).toBeLessThan(220 + every)
    }
    stop()
    expect([...rows.left.values()].flat()).toEqual([])
  },
)

test('a request that was left and decided takes its permits back once, if a later statement is undone', async () => {
  const { clock, answers, box, sent } = scene()
  const near = box(1)
  const three = (session: string, more?: Partial<ReservePermits>) => perHour(3, session, more)
  const undone = new SqlError('undone', '40001', false, undefined)
  // The first four statements succeed: two for the first request, and two that leave the other request.
  const far = box(200, [undefined, undefined, undefined, undefined, undone])
  const two = three('far', { units: [{ n: 2, more: 0, within: Infinity }] })
  const { at } = (await answers(far.reservePermits(two))).reserved.units[0]!
  const work = async (): Promise<void> => {
    // Runs until the distant box asks for its answer.
    while (sent[1]! < 5) {
      await near.reservePermits(three('near', { units: [] }))
      await new Promise<void>(resolve => clock.after(50, resolve))
    }
  }
  void work()
  await answers(far.reservePermits(three('far', { units: [], returns: [{ n: 1, at, from: at }] })))
  let free = 0
  for (let call = 0; call < 4; call++) free += given(await answers(near.reservePermits(three('near'))))
  expect(free).toBe(2)
})

test('a request that can not be read is left alone, and delays no other', async () => {
  const { answers, box, rows } = scene()
  const near = box(1)
  await answers(near.reservePermits(perHour(2)))
  const [name] = rows.left.keys()
  rows.left.set(name!, [
    { since: 1_000_000, id: 'damaged', request: '{' },
    { since: 1_000_000, id: 'huge', request: '{"runs":[[{"n":1},1e12]]}' },
  ])
  expect(given(await answers(near.reservePermits(perHour(2))))).toBe(1)
  expect(given(await answers(near.reservePermits(perHour(2))))).toBe(0)
})

test('a request that a box has left is decided by itself if no other box decides', async () => {
  const { clock, answers, box, rows } = scene()
  const [near, far] = [box(1), box(200)]
  await answers(near.reservePermits(perHour(2, 'near')))
  await answers(far.reservePermits(perHour(2, 'far', { units: [] })))
  // Two decisions of the near box make two decisions of the far box outdated. After the second one, the far box leaves
  // its request.
  const asked = far.reservePermits(perHour(2, 'far'))
  await answers(near.reservePermits(perHour(2, 'near', { units: [] })))
  await pass(clock, 450)
  await answers(near.reservePermits(perHour(2, 'near', { units: [] })))
  expect(given(await answers(asked))).toBe(1)
  expect([...rows.left.values()].flat()).toEqual([])
  expect(given(await answers(near.reservePermits(perHour(2, 'near'))))).toBe(0)
})

test('a pause that another box decides lasts from the request on', async () => {
  const { clock, answers, box, busy } = scene()
  const near = box(1)
  const stop = busy(near, 5)
  const far = box(200)
  await answers(far.reservePermits(perHour(10, 'far', { units: [] })))
  await answers(far.reservePermits(perHour(10, 'far', { units: [] })))
  const askedAt = clock.now()
  await answers(far.reservePermits(perHour(10, 'far', { units: [], pause: 5000 })))
  stop()
  const { reserved } = await answers(near.reservePermits(perHour(10, 'near')))
  expect(reserved.pausedUntil).toBeGreaterThanOrEqual(askedAt + 5000)
  expect(reserved.pausedUntil).toBeLessThanOrEqual(askedAt + 5000 + 1000)
})

test('the outcome of a call is unclear if a statement fails after another one has left the request for other boxes', async () => {
  const locked = new SqlError('the row is locked', '55P03', false, undefined)
  const { answers, box, busy } = scene()
  const stop = busy(box(1), 5)
  const failing: (Error | undefined)[] = []
  const far = box(200, failing)
  await answers(far.reservePermits(perHour(1_000_000, 'far')))
  await answers(far.reservePermits(perHour(1_000_000, 'far')))
  failing.push(locked)
  await expect(answers(far.reservePermits(perHour(1_000_000, 'far')))).rejects.toBe(locked)
  await answers(far.reservePermits(perHour(1_000_000, 'far')))
  failing.push(undefined, locked)
  await expect(answers(far.reservePermits(perHour(1_000_000, 'far')))).rejects.toMatchObject({
    code: '55P03',
    isUnclear: true,
  })
  stop()
})

test('boxes that share connections decide in one statement, and one of them may be closed meanwhile', async () => {
  const { answers, clock, rows } = scene()
  let sent = 0
  const ofAll = {
    query: (_: string, values: readonly string[]) => {
      sent++
      return Promise.resolve(rows.decide(values))
    },
  }
  const closed = { query: () => Promise.reject(new Error('the box was closed')) }
  const [one, other] = [{}, {}].map(() => {
    const sql = { ...closed, ofAll } as unknown as SqlClient
    return sharedLimiters(sql, statementsOf('signalbox'), clock)
  })
  await answers(one!.reservePermits(perHour(3, 'one', { units: [] })))
  sent = 0
  const both = [one!.reservePermits(perHour(3, 'one')), other!.reservePermits(perHour(3, 'other'))]
  expect((await answers(Promise.all(both))).map(given)).toEqual([1, 1])
  expect(sent).toBe(1)
})
