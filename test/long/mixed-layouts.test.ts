import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { inOrder, overlaps, type Interval } from '../../apps/chaos/check/intervals.js'
import { runProgram } from '../run-program.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

const ROUNDS = 60

/** Goes in and out of one lock, and tells when it was inside. */
const PROGRAM = `
import { setTimeout as sleep } from 'node:timers/promises'
const [release, url, key] = process.argv.slice(2)
const { open } = await import('./' + release + '/index.js')
const box = await open(url)
for (let round = 0; round < ${ROUNDS}; round++) {
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

/** A release whose data in Redis has the layout of this number. */
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

/** When processes of a release were inside. */
async function visits(release: string, key: string): Promise<Interval[]> {
  const { stdout } = await runProgram(process.execPath, ['program.js', release, server.url, key], {
    cwd: folder,
    timeLimit: 120_000,
  })
  return stdout
    .trim()
    .split('\n')
    .map(line => {
      const [from, to] = line.split(' ').map(BigInt) as [bigint, bigint]
      return { who: release, from, to }
    })
}

/** Two processes of each release work at once. */
async function rollingDeploy(keyOf: (release: string) => string): Promise<Interval[]> {
  const releases = ['layout-1', 'layout-2', 'layout-1', 'layout-2']
  return (await Promise.all(releases.map(release => visits(release, keyOf(release))))).flat()
}

test('releases with different layouts in Redis exclude each other', async () => {
  const all = await rollingDeploy(() => 'shared')
  expect(all).toHaveLength(4 * ROUNDS)
  expect(overlaps(all)).toEqual([])
  const handOvers = inOrder(all).filter(({ who }, index, those) => index > 0 && those[index - 1]!.who !== who)
  expect(handOvers.length).toBeGreaterThan(5)
  expect(await server.command('EXISTS', 'signalbox:1:{}:numbers', 'signalbox:2:{}:numbers')).toBe(2)
})

test('with a lock each they are found to overlap', async () => {
  expect(overlaps(await rollingDeploy(release => release)).length).toBeGreaterThan(0)
})
