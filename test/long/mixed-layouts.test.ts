import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { inOrder, overlaps, type Interval } from '../../apps/chaos/check/intervals.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

/** Number of concurrent processes. */
const PLACES = 4
/** Number of times that the lock passes from one release to the other before the next process is replaced. */
const CHANGES = 5

/** Enters and leaves one lock until its input ends, and reports the times inside. */
const PROGRAM = `
import { setTimeout as sleep } from 'node:timers/promises'
const [release, url, key] = process.argv.slice(2)
let stopped = false
process.stdin.on('end', () => (stopped = true)).resume()
const { open } = await import('./' + release + '/index.js')
const box = await open(url)
while (!stopped) {
  await box.mutex(key).run(async () => {
    const from = process.hrtime.bigint()
    await sleep(3)
    console.log(from + ' ' + process.hrtime.bigint())
  })
  await sleep(Math.random() * 80)
}
await box.close()
`

let server: RedisServer
let folder: string

/** Creates a release whose data in Redis has the layout of this number. */
function makeRelease(layout: number): void {
  const copy = join(folder, `layout-${layout}`)
  cpSync(join(root, 'dist/src'), copy, { recursive: true })
  const names = join(copy, 'engines/redis/names.js')
  const text = readFileSync(names, 'utf8')
  expect(text).toContain(`'signalbox:1:'`)
  writeFileSync(names, text.replace(`'signalbox:1:'`, `'signalbox:${layout}:'`))
}

beforeAll(async () => {
  server = await startRedis()
  folder = mkdtempSync(join(tmpdir(), 'signalbox-layouts-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'program.js'), PROGRAM)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  makeRelease(1)
  makeRelease(2)
})
afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true })
})

/** Starts a process of a release that adds its times inside to `visits`. The returned function ends it. */
function start(release: string, key: string, visits: Interval[]): () => Promise<void> {
  const argv = ['program.js', release, server.url, key]
  const child = spawn(process.execPath, argv, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  createInterface(child.stdout).on('line', line => {
    const [from, to] = line.split(' ').map(BigInt) as [bigint, bigint]
    visits.push({ who: release, from, to })
  })
  return async () => {
    child.stdin.end()
    expect(await closed).toEqual([0, null])
  }
}

/** Returns the number of times that the lock passed from one release to the other. */
function changes(visits: readonly Interval[]): number {
  return inOrder(visits).filter(({ who }, index, those) => index > 0 && those[index - 1]!.who !== who).length
}

/**
 * Replaces the processes of the older release one after another. It waits before each replacement until the lock has
 * passed between the releases often enough.
 */
async function rollingDeploy(keyOf: (release: string) => string): Promise<Interval[]> {
  const visits: Interval[] = []
  const older = Array.from({ length: PLACES }, () => start('layout-1', keyOf('layout-1'), visits))
  const newer: (() => Promise<void>)[] = []
  for (const [replaced, stop] of older.entries()) {
    if (replaced > 0) {
      const before = changes(visits)
      await until(() => changes(visits) >= before + CHANGES)
    }
    await stop()
    newer.push(start('layout-2', keyOf('layout-2'), visits))
  }
  await Promise.all(newer.map(stop => stop()))
  return visits
}

test('releases with different layouts in Redis exclude each other', async () => {
  const visits = await rollingDeploy(() => 'shared')
  expect(changes(visits)).toBeGreaterThanOrEqual((PLACES - 1) * CHANGES)
  expect(overlaps(visits)).toEqual([])
  expect(await server.command('EXISTS', 'signalbox:1:{}:numbers', 'signalbox:2:{}:numbers')).toBe(2)
})

test('with a lock each they are found to overlap', async () => {
  expect(overlaps(await rollingDeploy(release => release)).length).toBeGreaterThan(0)
})
