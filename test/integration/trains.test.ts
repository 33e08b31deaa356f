import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'signalbox'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DAY, faultless, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'
import { spoiledFeed } from '../support/trains/spoiled-feed.js'
import { zipArchive } from '../support/trains/zip-archive.js'

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
  test('ends with the serial result although workers are killed', async () => {
    const { status, report } = await trains(['--processes', '4', '--days', '3', '--kill', '6'])
    expect(report).toMatchObject({ ...faultless(3), processes: 4, days: 3, rejected: 0 })
    expect(report.kills).toHaveLength(6)
    expect(report.redelivered).toBeGreaterThan(0)
    const located = Object.values(report.locations)
    expect(located.reduce((sum, { arrived }) => sum + arrived, 0)).toBe(3 * DAY.moved)
    expect(status).toBe(0)
  })

  test('ends with a wrong result without locks and version checks', async () => {
    const { status, report, output } = await trains(['--processes', '4', '--days', '2', '--unsafe-no-locks'])
    expect(report.matchesSerial).toBe(false)
    expect(output).toMatch(/serial/)
    expect(status).toBe(1)
  })

  test('goes on where Ctrl-C interrupted it', async () => {
    const argv = ['--processes', '2', '--days', '2', '--speed', '20000']
    const first = await trains(argv, { interrupt: 4000 })
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
    expect(output).toMatch(/is lost: 1\n.*line 2: .*fly.*\n$/)
    expect(status).toBe(5)
  })

  test('loses nothing of a spoiled feed in a zip archive, as an independent count says', async () => {
    const feed = spoiledFeed()
    writeFileSync(join(folder, 'feed.zip'), zipArchive(feed.files))
    const argv = [
      '--gtfs',
      join(folder, 'feed.zip'),
      '--days',
      '1',
      '--processes',
      '2',
      '--kill',
      '2',
      '--strict',
    ]
    const { status, report } = await trains(argv)
    expect(report.locations).toEqual(feed.counts)
    expect(report).toMatchObject({ ...faultless(1), rejected: 0 })
    expect(Object.fromEntries(report.mendings.map(({ kind, lines }) => [kind, lines]))).toEqual(feed.faults)
    expect(status).toBe(0)
  })

  test('refuses to run beside another run on its engine, and leaves that one alone', async () => {
    const state = `file:${folder}/state`
    await using box = await open(state)
    await box.mutex('trains-run').run(async () => {
      const ended = trains(['--processes', '1', '--days', '1'])
      await expect(ended).rejects.toThrow(/status 2 [^]*another run uses file:/)
    })
    expect(await box.store('trains').get('RUN')).toBeUndefined()
  })

  test('gives up messages without locks, and reports them', async () => {
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
    expect(letter).toMatch(/within 50 ms/)
  })
})
