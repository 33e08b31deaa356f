import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { inOrder, overlaps, type Interval } from '../../apps/chaos/check/intervals.js'
import { runProgram } from '../support/run-program.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

/** How often each place is inside, by one release and then by the other. */
const ROUNDS = 60
const PLACES = 4

/** Goes in and out of one lock, and tells when it was inside. */
const PROGRAM = `
import { setTimeout as sleep } from 'node:timers/promises'
const [release, url, key, rounds] = process.argv.slice(2)
const { open } = await import('./' + release + '/index.js')
const box = await open(url)
for (let round = 0; round < Number(rounds); round++) {
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

/** When a process of a release was inside. */
async function visits(release: string, key: string, rounds: number): Promise<Interval[]> {
  const argv = ['program.js', release, server.url, key, String(rounds)]
  const { stdout } = await runProgram(process.execPath, argv, { cwd: folder, timeLimit: 120_000 })
  return stdout
    .trim()
    .split('\n')
    .map(line => {
      const [from, to] = line.split(' ').map(BigInt) as [bigint, bigint]
      return { who: release, from, to }
    })
}

/** A process works at each place until one of the newer release takes its place: at one after the other. */
async function rollingDeploy(keyOf: (release: string) => string): Promise<Interval[]> {
  const places = Array.from({ length: PLACES }, async (_, place) => {
    const before = (ROUNDS * (place + 1)) / (PLACES + 1)
    return [
      ...(await visits('layout-1', keyOf('layout-1'), before)),
      ...(await visits('layout-2', keyOf('layout-2'), ROUNDS - before)),
    ]
  })
  return (await Promise.all(places)).flat()
}

test('releases with different layouts in Redis exclude each other', async () => {
  const all = await rollingDeploy(() => 'shared')
  expect(all).toHaveLength(PLACES * ROUNDS)
  expect(overlaps(all)).toEqual([])
  const handOvers = inOrder(all).filter(({ who }, index, those) => index > 0 && those[index - 1]!.who !== who)
  expect(handOvers.length).toBeGreaterThan(5)
  expect(await server.command('EXISTS', 'signalbox:1:{}:numbers', 'signalbox:2:{}:numbers')).toBe(2)
})

test('with a lock each they are found to overlap', async () => {
  expect(overlaps(await rollingDeploy(release => release)).length).toBeGreaterThan(0)
})
