import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { open, type Box, type TimedOutError } from '../../src/index.js'
import { queued } from '../../packages/conformance/src/time.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

let redis: RedisServer
let postgres: PostgresServer
let folder: string
beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  folder = await mkdtemp(join(tmpdir(), 'signalbox-holder-'))
})
afterAll(async () => {
  await Promise.all([redis.kill(), postgres.kill()])
  await rm(folder, { recursive: true })
})

const engines: [string, () => string][] = [
  ['memory', () => 'memory:holders'],
  ['file', () => `file:${folder}`],
  ['Redis', () => redis.url],
  ['PostgreSQL', () => postgres.url],
]

async function timedOut(waiting: Promise<unknown>): Promise<TimedOutError> {
  return (await waiting.catch((error: unknown) => error)) as TimedOutError
}

const later = (box: Box) => timedOut(box.mutex('key').acquire({ wait: 300 }))

test.each(engines)('on %s a waiter that timed out gets the holder in another box', async (_, url) => {
  await using one = await open(url(), { label: 'the box' })
  await using other = await open(url())
  await using third = await open(url())
  const held = await one.mutex('key').acquire()
  const { session } = one
  const [first, second] = await Promise.all([later(other), queued(third, 'key', 1).then(() => later(third))])
  expect(first.holder).toMatchObject({ session, pid: process.pid, label: 'the box' })
  expect(first.holder!.age).toBeGreaterThan(250)
  // A waiter behind another one can't know whether the holder is still the same.
  expect(second.holder).toMatchObject({ session, age: undefined })
  expect(second.message).toMatch(/ \(last known holder: "the box" on .+, pid \d+\)$/)

  const set = await timedOut(other.mutex('key', 'other key').acquire({ wait: 300 }))
  expect(set.holder).toMatchObject({ session, age: undefined })
  await held.release()
})
