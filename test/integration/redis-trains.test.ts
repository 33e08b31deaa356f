import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRedis, type RedisServer } from '../servers/redis.js'
import { DAY, runTracker, TIME_LIMIT } from '../trains/run-tracker.js'

let server: RedisServer
let folder: string

beforeAll(async () => {
  server = await startRedis()
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'the tracker on Redis ends as the serial result says although workers are killed',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    const argv = ['--processes', '4', '--days', '2', '--kill', '4']
    const { status, output, report } = await runTracker(folder, server.url, argv)
    expect(status, output).toBe(0)
    expect(report).toMatchObject({
      messages: 2 * DAY.messages,
      created: 2 * DAY.created,
      moved: 2 * DAY.moved,
      deleted: 2 * DAY.deleted,
      ignored: 0,
      deadLettered: 0,
      matchesSerial: true,
    })
    expect(report.kills).toHaveLength(4)
  },
)
