import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/clock.js'
import type { ReservePermits } from '../../../../src/engine/limits/reserve-permits.js'
import { SqlError, type SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
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
  return new Limiters({ query } as Partial<SqlClient> as SqlClient, {} as Statements, systemClock)
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
