import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
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
  test('ends with a wrong result without locks and version checks', async () => {
    const { status, report, output } = await trains(['--processes', '4', '--days', '2', '--unsafe-no-locks'])
    expect(report.matchesSerial).toBe(false)
    expect(output).toMatch(/serial/)
    expect(status).toBe(1)
  })

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

  test('rejects a bad line of its input by number, and applies the rest', async () => {
    const lines = [
      { id: '1', type: 'create', train: 'A', location: 'X' },
      { id: '2', type: 'fly', train: 'A' },
      { id: '3', type: 'move', train: 'A', to: 'Y' },
      { id: '4', type: 'move', train: 'B', to: 'Y' },
    ]
    const input = lines.map(line => JSON.stringify(line)).join('\n')
    const argv = ['--processes', '1', '--messages', '-', '--strict']
    const { status, report, output } = await trains(argv, { input })
    expect(report).toMatchObject({
      messages: 3,
      created: 1,
      moved: 1,
      ignored: 1,
      rejected: 1,
      matchesSerial: true,
    })
    expect(report.locations).toMatchObject({ X: { created: 1, departed: 1 }, Y: { arrived: 1 } })
    expect(output).toMatch(/is lost\): 1\n.*line 2: .*fly.*\n$/)
    expect(status).toBe(5)
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

  test('dead-letters messages that get no locks, and reports them', async () => {
    const letters = join(folder, 'letters.ndjson')
    const input = ['X', 'Y'].map((at, id) =>
      JSON.stringify({ id: `${id}`, type: 'create', train: at, location: at }),
    )
    await using box = await open(`file:${folder}/state`)
    const ended = await box
      .mutex('trains/LOC_X')
      .run(() =>
        trains(
          [
            ...['--processes', '1', '--messages', '-', '--dead-letters', letters],
            ...['--lock-wait', '50ms', '--lock-tries', '2', '--attempts', '2'],
          ],
          { input: input.join('\n') },
        ),
      )
    expect(ended.report).toMatchObject({ created: 1, deadLettered: 1, matchesSerial: true })
    expect(ended.report.locations).toMatchObject({ Y: { created: 1 } })
    expect(ended.status).toBe(3)
    const [letter] = readFileSync(letters, 'utf8').trim().split('\n')
    expect(letter).toMatch(/"X"/)
    expect(letter).toMatch(/timed out after 50 ms/)
  })
})
