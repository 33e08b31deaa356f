import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { runTracker } from '../support/trains/run-tracker.js'
import { spoiledFeed } from '../support/trains/spoiled-feed.js'
import { zipArchive } from '../support/trains/zip-archive.js'

const DAYS = 4
const KILLS = 20
/**
 * Maximum duration, in milliseconds. A process starts as slowly as its engine's client, and other tests slow it down.
 */
const MAX_RUN = 5 * 60_000

/** Starts an engine for one run. */
const ENGINES: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  file: async folder => `file:${folder}/state`,
  Redis: async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    return server.url
  },
  PostgreSQL: async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    return server.url
  },
  ZooKeeper: async () => {
    const server = await startZooKeeper()
    onTestFinished(() => server.kill())
    return `zookeeper://${server.address}/trains?sessionTimeout=2s`
  },
  Hazelcast: async () => {
    const server = await startHazelcast()
    onTestFinished(() => server.kill())
    return `hazelcast://${server.address}/${TEST_CLUSTER}?map=trains`
  },
}

test.each(Object.entries(ENGINES))(
  'the tracker on %s loses nothing of a spoiled feed in a zip archive while twenty workers are killed',
  { timeout: 2 * MAX_RUN },
  async (_, start) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const feed = spoiledFeed()
    writeFileSync(join(folder, 'feed.zip'), zipArchive(feed.files))
    const argv = ['--gtfs', join(folder, 'feed.zip'), '--days', `${DAYS}`, '--kill', `${KILLS}`, '--strict']
    const engine = await start(folder)
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
