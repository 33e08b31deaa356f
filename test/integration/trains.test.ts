import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { open } from 'signalbox'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { servedEngines, startEngine } from '../support/servers/engines.js'
import { startRedis } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'
import { DAY, faultless, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'

const DAYS = 4
const KILLS = 20
/**
 * Maximum duration, in milliseconds. A process starts as slowly as its engine's client, and other tests slow it down.
 */
const MAX_RUN = 5 * 60_000

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

test.each(['file', ...servedEngines] as const)(
  'the tracker on %s loses nothing while twenty workers are killed',
  { timeout: 2 * MAX_RUN },
  async name => {
    const url = name === 'file' ? `file:${folder}/state` : await startEngine(name)
    const engine = name === 'ZooKeeper' ? `${url}?sessionTimeout=2s` : url
    const argv = ['--days', `${DAYS}`, '--kill', `${KILLS}`]
    const { status, output, report } = await runTracker(folder, engine, argv, { limit: MAX_RUN })
    expect(status, output).toBe(0)
    expect(report).toMatchObject(faultless(DAYS))
    expect(report.kills).toHaveLength(KILLS)
    expect(report.redelivered).toBeGreaterThan(0)
  },
)

test(
  'the tracker on Redis ends with the serial result although workers are killed and the server is restarted',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    await using server = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
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

test('the tracker continues where Ctrl-C interrupted it', { timeout: 2 * TIME_LIMIT }, async () => {
  const state = `file:${folder}/state`
  const argv = ['--processes', '2', '--days', '2', '--speed', '20000']
  const first = await runTracker(folder, state, argv, { interrupt: true })
  expect(first.status).toBe(130)
  const second = await runTracker(folder, state, ['--processes', '2', '--days', '2', '--resume'])
  expect(second.report).toMatchObject({ matchesSerial: true, deadLettered: 0 })
  const created = Object.values(second.report.locations).reduce((sum, one) => sum + one.created, 0)
  expect(created).toBe(2 * DAY.created)
  expect(second.status).toBe(0)
})

test('the tracker refuses to run while another run uses its engine, and leaves that one alone', async () => {
  const state = `file:${folder}/state`
  await using box = await open(state)
  await box.mutex('trains-run').run(async () => {
    const ended = runTracker(folder, state, ['--processes', '1', '--days', '1'])
    await expect(ended).rejects.toThrow(/status 2 [^]*another run uses file:/)
  })
  expect(await box.store('trains').get('RUN')).toBeUndefined()
})
