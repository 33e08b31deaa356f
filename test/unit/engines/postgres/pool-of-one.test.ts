import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { PgClient, type PgConnection } from '../../../../src/engines/postgres/clients/pg-client.js'
import { PoolOfOne } from '../../../../src/engines/postgres/clients/pool-of-one.js'

/** Two statements over a client, the second of which waits for the reply to the first. */
async function start() {
  const clock = new VirtualClock()
  const sent: string[] = []
  const emitter = new EventEmitter()
  let fail: (error: Error) => void = () => undefined
  const client = Object.assign(emitter, {
    query: ({ text }: { text: string }) => {
      sent.push(text)
      return new Promise((_, reject) => (fail = reject))
    },
  }) as unknown as PgConnection
  const pool = new PoolOfOne(client, clock)
  const sql = new PgClient('postgres', pool, clock, () => pool.end())
  const first = sql.query('first', []).catch((error: unknown) => error)
  const second = sql.query('second', []).catch((error: unknown) => error)
  await new Promise(setImmediate)
  expect(sent).toEqual(['first'])
  return { sql, sent, emitter, second, failFirst: () => fail(new Error('it ended')), first }
}

test('a statement that waits while the connection of a given client ends is not sent', async () => {
  const { sent, emitter, first, second, failFirst } = await start()
  emitter.emit('error', new Error('it ended'))
  failFirst()
  await first
  expect(await second).toMatchObject({
    isUnclear: false,
    message: expect.stringContaining('not connected any more') as string,
  })
  expect(sent).toEqual(['first'])
})

test('a statement that waits while the box is closed is not sent', async () => {
  const { sql, sent, first, second, failFirst } = await start()
  await sql.close()
  failFirst()
  await first
  expect(await second).toMatchObject({ isUnclear: false })
  expect(sent).toEqual(['first'])
})
