import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'signalbox'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DAY, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the tracker on the folder of the test. */
function trains(argv: readonly string[], options?: Parameters<typeof runTracker>[3]) {
  return runTracker(folder, `file:${folder}/state`, argv, options)
}

describe('the tracker on the file engine', { timeout: 2 * TIME_LIMIT }, () => {
  test('continues where Ctrl-C interrupted it', async () => {
    const argv = ['--processes', '2', '--days', '2', '--speed', '20000']
    const first = await trains(argv, { interrupt: true })
    expect(first.status).toBe(130)
    const second = await trains(['--processes', '2', '--days', '2', '--resume'])
    expect(second.report).toMatchObject({ matchesSerial: true, deadLettered: 0 })
    const created = Object.values(second.report.locations).reduce((sum, one) => sum + one.created, 0)
    expect(created).toBe(2 * DAY.created)
    expect(second.status).toBe(0)
  })

  test('refuses to run while another run uses its engine, and leaves that one alone', async () => {
    const state = `file:${folder}/state`
    await using box = await open(state)
    await box.mutex('trains-run').run(async () => {
      const ended = trains(['--processes', '1', '--days', '1'])
      await expect(ended).rejects.toThrow(/status 2 [^]*another run uses file:/)
    })
    expect(await box.store('trains').get('RUN')).toBeUndefined()
  })
})
