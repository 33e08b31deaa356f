import { existsSync, mkdtempSync, rmSync } from 'node:fs'
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

test(
  'a long outage of Redis aborts the tracker with status 4, and a run that resumes it loses nothing',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    await server.command('FLUSHALL')
    const letters = join(folder, 'letters')
    const argv = ['--processes', '4', '--days', '4', '--dead-letters', letters]
    const run = runTracker(folder, server.url, [...argv, '--engine-wait', '500ms'])
    const aborted = expect(run).rejects.toThrow(
      /status 4 [^]*unreachable for 500 ms: .*; continue with --resume/,
    )
    await until(async () => Number(await server.command('DBSIZE')) > 100)
    await server.kill()
    await aborted
    expect(existsSync(letters)).toBe(false)
    await server.start()
    const { status, output, report } = await runTracker(folder, server.url, [...argv, '--resume'])
    expect(status, output).toBe(0)
    expect(report).toMatchObject(faultless(4))
  },
)
