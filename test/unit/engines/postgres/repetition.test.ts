import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { STATEMENT_TIMEOUT } from '../../../../src/engines/postgres/clients/answered.js'
import { repeated, Repetition } from '../../../../src/engines/postgres/clients/repetition.js'
import { SqlError } from '../../../../src/engines/postgres/clients/sql-client.js'

const lost = (): SqlError => new SqlError('the connection was lost', undefined, true, undefined)
const refused = new SqlError('connect ECONNREFUSED', undefined, false, undefined)
const idle = new SqlError('idle_session_timeout', '57P05', false, undefined)

/**
 * Runs a statement that fails with these errors, one after another.
 * @returns the number of attempts, and the outcome
 */
async function run(...errors: SqlError[]): Promise<{ sent: number; outcome: unknown }> {
  let sent = 0
  const query = repeated(() => {
    const error = errors[sent++]
    return error ? Promise.reject(error) : Promise.resolve('done')
  }, new VirtualClock())
  const outcome = await query('select 1', []).catch((error: unknown) => error)
  return { sent, outcome }
}

test('a statement is sent again each time it is lost with its connection', async () => {
  expect(await run(lost(), idle, lost())).toEqual({ sent: 4, outcome: 'done' })
})

test('a statement that the server did not execute, because the session was idle, is not unclear', () => {
  const repetition = new Repetition(new VirtualClock())
  expect(repetition.follows(idle)).toBe(true)
  expect(repetition.lost).toBeUndefined()
  const error = lost()
  expect(repetition.follows(error)).toBe(true)
  expect(repetition.lost).toBe(error)
})

test('a statement that was not sent fails at once', async () => {
  expect(await run(refused)).toEqual({ sent: 1, outcome: refused })
})

test('a statement that is always lost is not sent without end', async () => {
  const { sent, outcome } = await run(...Array.from({ length: 100 }, lost))
  expect(sent).toBeLessThan(20)
  expect(outcome).toBeInstanceOf(SqlError)
})

test('a statement is not sent again once its time is over', () => {
  const clock = new VirtualClock()
  const repetition = new Repetition(clock)
  clock.advance(STATEMENT_TIMEOUT - 1)
  expect(repetition.follows(lost())).toBe(true)
  clock.advance(1)
  expect(repetition.follows(lost())).toBe(false)
})
