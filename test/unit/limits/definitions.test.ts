import { describe, expect, test } from 'vitest'
import { checkedOptions } from '../../../src/limits/limit-options.js'
import type { WindowDefinition } from '../../../src/engine/limits/definition.js'
import { reservePermits, type LimiterState } from '../../../src/engine/limits/reserve-permits.js'
import type { Reserved } from '../../../src/engine/limits/reservation.js'

const SECOND = 1000
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
/** Time after which a limit that no process names any more ends, in milliseconds. */
const IN_FORCE = 5000

/** The limits that a process names. */
type Named = readonly WindowDefinition[]

function limit(permits: number, per: number, kind: WindowDefinition['kind'] = 'sliding'): WindowDefinition {
  return { kind, limit: permits, per, hold: 20, guard: 20, timeZone: '' }
}

/** One limiter, and processes that ask it at times of its clock. */
class Scene {
  state: LimiterState | undefined

  /** Returns the number of permits, at most `n`, that the process gets now. */
  ask(at: number, session: string, windows: Named, n: number): number {
    const units = Array.from({ length: n }, () => ({ n: 1, more: 0, within: 0 }))
    const { units: given } = this.answer(at, session, windows, units)
    return given.filter(unit => unit.n > 0).length
  }

  answer(
    at: number,
    session: string,
    windows: Named,
    units: readonly { n: number; more: number; within: number }[],
  ): Reserved {
    const rest = { limiter: 'it', horizon: 5000, hold: 20, returns: [], pause: undefined, explain: undefined }
    // Later than the end of any window.
    const now = 30 * DAY + at
    const decision = reservePermits(this.state, { session, windows, units, ...rest }, now, now)
    // Copies the state through text, as an engine stores it.
    this.state = JSON.parse(JSON.stringify(decision.state), (_, value: unknown) =>
      value === null ? -Infinity : value,
    ) as LimiterState
    return decision.reserved
  }
}

/** A request: its time, its process, the limits that it names, and the numbers of requested and given permits. */
type Step = readonly [at: number, session: string, named: Named, asked: number, given: number]

const second = limit(20, SECOND)
const minute = limit(60, MINUTE)
const daily = limit(10, DAY, 'calendar')

const cases: Readonly<Record<string, readonly Step[]>> = {
  'a daily quota does not begin anew when it is named again': [
    [0, 'a', [daily], 8, 8],
    [HOUR, 'b', [second], 5, 5],
    [2 * HOUR, 'a', [daily], 8, 0],
    [DAY, 'a', [daily], 20, 10],
  ],
  'a limit that a day was exceeded by far is whole again on the next day': [
    [0, 'a', [daily], 1, 1],
    ...[1, 2, 3].map((hour): Step => [hour * HOUR, 'b', [second], 20, 20]),
    [4 * HOUR, 'a', [daily], 1, 0],
    [DAY, 'a', [daily], 20, 10],
  ],
  'a limit of a process that no longer asks holds for five seconds': [
    [0, 'a', [limit(1, HOUR)], 1, 1],
    [0, 'b', [limit(1, HOUR)], 1, 0],
    [100, 'a', [limit(10, HOUR)], 1, 0],
    [IN_FORCE, 'a', [limit(10, HOUR)], 1, 0],
    [IN_FORCE + 1, 'a', [limit(10, HOUR)], 20, 9],
  ],
  'a limit of a process that goes on naming it holds for all': [
    [0, 'old', [limit(2, MINUTE)], 1, 1],
    [1000, 'new', [limit(10, MINUTE)], 10, 1],
    ...Array.from({ length: 10 }, (_, turn): Step => [3000 + turn * 4000, 'old', [limit(2, MINUTE)], 1, 0]),
    [40_000, 'new', [limit(10, MINUTE)], 10, 0],
  ],
  'a limit that is set back to what it was counts what was given meanwhile': [
    [0, 'a', [limit(1, HOUR)], 1, 1],
    [100, 'a', [limit(10, HOUR)], 5, 5],
    [200, 'a', [limit(1, HOUR)], 1, 0],
    [300, 'a', [limit(10, HOUR)], 20, 4],
  ],
  'a rolling deployment to another window': [
    [0, 'old', [limit(20, SECOND)], 20, 20],
    [500, 'new', [limit(30, MINUTE)], 30, 0],
    [1100, 'old', [limit(20, SECOND)], 20, 10],
    [7000, 'new', [limit(30, MINUTE)], 30, 0],
    [60_100, 'new', [limit(30, MINUTE)], 30, 20],
  ],
  'evenly spaced permits count under the limit that is named next': [
    [0, 'a', [limit(10, 10 * SECOND, 'smooth')], 5, 1],
    [1100, 'a', [limit(10, 10 * SECOND, 'smooth')], 5, 1],
    [1200, 'a', [limit(5, 10 * SECOND)], 5, 3],
    [1300, 'a', [limit(10, 10 * SECOND, 'smooth')], 5, 1],
  ],
}

describe('definitions of one name that differ or change', () => {
  test.each(Object.entries(cases))('%s', (_, steps) => {
    const scene = new Scene()
    const given = steps.map(([at, session, named, asked]) => scene.ask(at, session, named, asked))
    expect(given).toEqual(steps.map(step => step[4]))
  })

  test('more processes than are noted: the old limit ends five seconds after it was last named', () => {
    const scene = new Scene()
    const sessions = Array.from({ length: 20 }, (_, number) => String(number))
    for (const session of sessions) scene.ask(0, session, [limit(1, HOUR)], 1)
    for (const session of sessions) expect(scene.ask(100, session, [limit(9, HOUR)], 1)).toBe(0)
    expect(scene.ask(IN_FORCE + 1, '0', [limit(9, HOUR)], 9)).toBe(8)
  })

  test('a caller learns when the limits of others end, not when they would let it through', () => {
    const scene = new Scene()
    scene.ask(0, 'a', [limit(1, HOUR)], 1)
    scene.ask(0, 'b', [limit(1, HOUR)], 1)
    const patient = { n: 1, more: 0, within: 30_000 }
    const { units, now, fadesAt } = scene.answer(100, 'a', [limit(10, HOUR)], [patient])
    expect(units).toEqual([{ n: 0, at: fadesAt }])
    expect(fadesAt - now).toBe(IN_FORCE - 100)
  })

  test('an operator who names no limit ends none', () => {
    const scene = new Scene()
    scene.ask(0, 'a', [limit(1, HOUR)], 1)
    scene.answer(100, 'a', [], [])
    scene.ask(200, 'b', [limit(10, HOUR)], 1)
    expect(scene.state!.records).toHaveLength(2)
  })

  test('a limit that changes all the time leaves no more than the counts of its windows', () => {
    const scene = new Scene()
    scene.ask(0, 'a', [second, limit(1000, DAY), daily], 1)
    for (let turn = 1; turn < 500; turn++) scene.ask(turn * 100, 'a', [limit(20 + turn, MINUTE)], 1)
    // The records of the limit in force, and of the two limits whose counts it lacks.
    expect(scene.state!.records).toHaveLength(3)
    expect(scene.ask(MINUTE, 'a', [daily], 10)).toBe(0)
  })

  test('a count is dropped when its window is over', () => {
    const scene = new Scene()
    scene.ask(0, 'a', [minute], 60)
    scene.ask(6000, 'b', [second], 1)
    expect(scene.state!.records).toHaveLength(2)
    scene.ask(70_000, 'b', [second], 1)
    scene.ask(140_000, 'b', [second], 0)
    expect(scene.state!.records).toHaveLength(1)
  })
})

test.each([
  ['Europe/Vienna', 'europe/vienna', 'EUROPE/VIENNA'],
  ['UTC', undefined, 'utc', 'Etc/UTC', 'GMT'],
  // Some versions of Node know this zone by its older name.
  ['Asia/Kolkata', 'Asia/Kolkata'],
])('processes that spell the time zone %s differently name one limit', (...zones) => {
  const named = zones.map(timeZone =>
    checkedOptions({ limit: 1, per: '1d', window: 'calendar', timeZone }).limits.map(limit => limit.timeZone),
  )
  expect(new Set(named.flat()).size).toBe(1)
})
