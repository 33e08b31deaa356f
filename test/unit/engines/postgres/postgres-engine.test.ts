import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import type { Listener } from '../../../../src/engine/contract.js'
import { SqlError, type SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
import { PostgresEngine } from '../../../../src/engines/postgres/postgres-engine.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { lockRequest } from '../../../support/lock-request.js'
import { pass } from '../../../support/passing.js'

const waiting = lockRequest('s.1', [{ key: 'key', mode: 'exclusive' }])

/** Starts an engine that receives hints and has a waiting request. */
async function start() {
  const clock = new VirtualClock()
  const { reservedOrGone, sendNotices } = statementsOf('signalbox')
  const woken: string[] = []
  /** The checks for reserved requests that have no reply yet. */
  const looks: ((ids: readonly string[]) => void)[] = []
  const decided: string[] = []
  const server: { failure: Error | undefined } = { failure: undefined }
  let deliver: (message: string) => void = () => undefined
  const sql = {
    name: 'postgres://host',
    together: () => Promise.resolve(),
    query: (text: string, values: readonly string[]) => {
      if (text === reservedOrGone.text)
        return new Promise(resolve => looks.push(ids => resolve(JSON.stringify(ids))))
      if (text === sendNotices.text) {
        deliver('test')
        return Promise.resolve('')
      }
      decided.push(values.join(' '))
      if (server.failure) return Promise.reject(server.failure)
      return Promise.resolve(JSON.stringify([[['queued', 1, 60_000]], [], null]))
    },
    listen: (channel: string, onMessage: (message: string, channel: string) => void) => {
      deliver = message => onMessage(message, channel)
      const query = (): Promise<unknown> => new Promise(() => undefined)
      return Promise.resolve({ query, run: () => Promise.resolve(), stop: () => Promise.resolve() })
    },
    close: () => Promise.resolve(),
  } as Partial<SqlClient> as SqlClient
  const engine = new PostgresEngine(sql, 'signalbox', clock)
  const listener: Partial<Listener> = { wake: id => void woken.push(id), missed: () => undefined }
  await engine.join({ session: 's', host: 'h', pid: 1, label: undefined }, listener as Listener)
  const queued = engine.submit({ type: 'enqueue', request: waiting, lease: 10_000, wait: 10_000 })
  await pass(clock, 10)
  await queued
  return { clock, engine, server, woken, looks, decided, hint: (message: string) => deliver(message) }
}

test('hints that are missed while a box looks for its reserved requests are made up for by another look', async () => {
  const { clock, woken, looks, hint } = await start()
  hint('missed ')
  expect(looks).toHaveLength(1)
  hint('missed ')
  expect(looks).toHaveLength(1)
  looks.shift()!([])
  await pass(clock, 0)
  expect(looks).toHaveLength(1)
  looks.shift()!([waiting.id])
  await pass(clock, 0)
  expect(woken).toEqual([waiting.id])
  expect(looks).toHaveLength(0)
})

test('a box that leaves cancels its requests', async () => {
  const { clock, engine, decided } = await start()
  decided.length = 0
  const left = engine.leave()
  await pass(clock, 10)
  await left
  expect(decided).toHaveLength(1)
  expect(decided[0]).toContain(waiting.id)
})

test.each([
  { reached: false, cancelled: 1 },
  { reached: true, cancelled: 2 },
])(
  'a box that leaves cancels a request that failed if it may have reached the server: $reached',
  async ({ reached, cancelled }) => {
    const { clock, engine, server, decided } = await start()
    server.failure = new SqlError('the connection ended', undefined, reached, undefined)
    const request = lockRequest('s.2', [{ key: 'other', mode: 'exclusive' }])
    const sent = expect(
      engine.submit({ type: 'enqueue', request, lease: 10_000, wait: 10_000 }),
    ).rejects.toMatchObject({ code: reached ? 'INDETERMINATE' : 'UNAVAILABLE' })
    await pass(clock, 10_000)
    await sent
    server.failure = undefined
    decided.length = 0
    const left = engine.leave()
    await pass(clock, 10)
    await left
    expect(decided.join('\n').match(/s\.[12]/g)).toHaveLength(cancelled)
  },
)
