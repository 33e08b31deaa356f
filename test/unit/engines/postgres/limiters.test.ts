import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/clock.js'
import type { ReservePermits } from '../../../../src/engine/limits/reserve-permits.js'
import { SqlError, type Query, type SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Limiters } from '../../../../src/engines/postgres/limiters.js'
import type { Statements } from '../../../../src/engines/postgres/statements.js'

const onePerHour: ReservePermits = {
  limiter: 'api',
  session: 'box',
  windows: [{ kind: 'sliding', limit: 1, per: 3_600_000, hold: 1000, guard: 1000, timeZone: '' }],
  units: [{ n: 1, more: 0, within: Infinity }],
  horizon: 10_000,
  hold: 1000,
  returns: [],
  pause: undefined,
  explain: undefined,
}

type Answer = 'late' | 'kept' | Error

/** Limiters over a server that gives these replies, one after another, and then stores everything. */
function limitersOver(...answers: Answer[]): Limiters {
  let version = 0
  const query = async (): Promise<string> => {
    const answer = answers.shift() ?? 'kept'
    if (answer instanceof Error) throw answer
    const now = systemClock.now()
    return JSON.stringify(answer === 'late' ? ['clock', now] : ['done', now, [[++version]], [0, 0]])
  }
  return new Limiters({} as SqlClient, query, {} as Statements, systemClock)
}

test('a decision that arrives too late is made again, and counts once', async () => {
  const limiters = limitersOver('late', 'kept', 'late')
  // The first call learns the server's clock.
  await limiters.reservePermits({ ...onePerHour, units: [] })
  expect((await limiters.reservePermits(onePerHour)).reserved.units[0]).toMatchObject({ n: 1 })
})

test('a decision whose call failed is not counted by the next one', async () => {
  const failed = new SqlError('the connection is lost', undefined, false, undefined)
  const limiters = limitersOver('late', 'kept', failed)
  await limiters.reservePermits({ ...onePerHour, units: [] })
  await expect(limiters.reservePermits(onePerHour)).rejects.toBe(failed)
  expect((await limiters.reservePermits(onePerHour)).reserved.units[0]).toMatchObject({ n: 1 })
})

test('a decision whose reply was lost is made again, but takes no permit back twice', async () => {
  let version = 0
  let kept: string | undefined
  let isLost = false
  // Stores a decision by the newest state, as the server does. Its last reply is lost.
  const query: Query = (_, [, versions = '', at, , contents = '']) => {
    const now = systemClock.now()
    if (at === String(Number.MAX_SAFE_INTEGER)) return Promise.resolve(JSON.stringify(['clock', now]))
    if (versions !== `{${version}}`)
      return Promise.resolve(JSON.stringify(['done', now, [[version, kept]], [0, 0]]))
    version++
    kept = (JSON.parse(`[${contents.slice(1, -1)}]`) as string[])[0]
    if (!isLost) return Promise.resolve(JSON.stringify(['done', now, [[version]], [0, 0]]))
    isLost = false
    return Promise.reject(new SqlError('the connection was lost', undefined, true, undefined))
  }
  const limiters = new Limiters({} as SqlClient, query, {} as Statements, systemClock)
  const two = {
    ...onePerHour,
    windows: [{ ...onePerHour.windows[0]!, limit: 2 }],
    units: [{ ...onePerHour.units[0]!, n: 2 }],
  }
  const { at } = (await limiters.reservePermits(two)).reserved.units[0]!
  isLost = true
  // One permit is free, as long as the other is not taken back.
  await limiters.reservePermits({ ...two, units: [], returns: [{ n: 1, at, from: at }] })
  expect((await limiters.reservePermits(two)).reserved.units[0]).toMatchObject({ n: 0 })
})
