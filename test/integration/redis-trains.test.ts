import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'
import { faultless, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'

let server: RedisServer
let folder: string

beforeAll(async () => {
  server = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'the tracker on Redis ends with the serial result although workers are killed and the server is restarted',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    const argv = ['--processes', '4', '--days', '2', '--kill', '4']
    let isOver = false
    const run = runTracker(folder, server.url, argv).finally(() => (isOver = true))
    for (const keys of [20, 100]) {
      await until(async () => isOver || Number(await server.command('DBSIZE')) > keys)
      await server.kill()
      // Longer than all attempts to deliver a message.
      await setTimeout(1000)
      expect(isOver).toBe(false)
      await server.start()
    }
    const { status, output, report } = await run
    expect(status, output).toBe(0)
    expect(report).toMatchObject(faultless(2))
    expect(report.kills).toHaveLength(4)
  },
)
