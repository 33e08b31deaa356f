import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { servedEngines, startEngine } from '../support/servers/engines.js'
import { runTracker } from '../support/trains/run-tracker.js'
import { spoiledFeed } from '../support/trains/spoiled-feed.js'
import { zipArchive } from '../support/trains/zip-archive.js'

const DAYS = 4
const KILLS = 20
/**
 * Maximum duration, in milliseconds. A process starts as slowly as its engine's client, and other tests slow it down.
 */
const MAX_RUN = 5 * 60_000

test.each(['file', ...servedEngines] as const)(
  'the tracker on %s loses nothing of a spoiled feed in a zip archive while twenty workers are killed',
  { timeout: 2 * MAX_RUN },
  async name => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const feed = spoiledFeed()
    writeFileSync(join(folder, 'feed.zip'), zipArchive(feed.files))
    const argv = ['--gtfs', join(folder, 'feed.zip'), '--days', `${DAYS}`, '--kill', `${KILLS}`, '--strict']
    const url = name === 'file' ? `file:${folder}/state` : await startEngine(name)
    const engine = name === 'ZooKeeper' ? `${url}?sessionTimeout=2s` : url
    const { status, output, report } = await runTracker(folder, engine, argv, { limit: MAX_RUN })
    const lines = (kinds: typeof report.repairs) =>
      Object.fromEntries(kinds.map(({ kind, lines: found }) => [kind, found]))
    expect(lines(report.repairs)).toEqual(feed.repaired)
    expect(lines(report.rejections)).toEqual(feed.rejected)
    expect(report).toMatchObject({ matchesSerial: true, deadLettered: 0, ignored: 0 })
    expect(report.kills).toHaveLength(KILLS)
    expect(report.redelivered).toBeGreaterThan(0)
    const expected = Object.entries(feed.counts).map(([stop, counts]) => [
      stop,
      Object.fromEntries(Object.entries(counts).map(([what, times]) => [what, DAYS * times])),
    ])
    expect(report.locations).toEqual(Object.fromEntries(expected))
    expect(status, output).toBe(5)
  },
)
