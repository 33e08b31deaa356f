import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Figures } from '../../apps/limits/figures.js'
import { runProgram } from '../run-program.js'
import { startRedis } from '../servers/redis.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-limits-'))
})

afterAll(() => rm(folder, { recursive: true }))

/** Runs the comparison against its service and gives what it wrote. */
async function compared(...options: string[]) {
  const json = join(folder, 'report.json')
  const svg = join(folder, 'picture.svg')
  const argv = ['dist/apps/limits/main.js', '--json', json, '--picture', svg, ...options]
  const { stdout } = await runProgram(process.execPath, argv, { cwd: root, timeLimit: 600_000 })
  expect(await readFile(svg, 'utf8')).toMatch(/^<svg /)
  return { stdout, ...(JSON.parse(await readFile(json, 'utf8')) as { strategies: Figures[] }) }
}

test('all strategies and scenarios against the service', async () => {
  const { strategies, stdout } = await compared('--seconds', '4')
  expect(strategies.length).toBe(17)
  expect(stdout.match(/^strategy /gm)!.length).toBe(5)
  const byName = new Map(strategies.map(one => [one.name, one]))
  // Where the machine is busy calls arrive late, so the service's count is held against a bound that one step would break.
  expect(byName.get('signalbox sliding')!.calls).toBeLessThanOrEqual(80)
  expect(byName.get('first caller refill')!.calls).toBeLessThan(40)
  expect(byName.get('counter, usual')!.calls).toBeGreaterThan(100)
})

test.each(['threads', 'processes'])('workers in %s', async mode => {
  // Fewer than anybody would try, because most of the time goes into the start of threads.
  const options = ['--workers', '20', '--scenario', 'calm', '--seconds', '4']
  const { strategies } = await compared('--mode', mode, ...options)
  const ours = strategies.filter(({ name }) => name.startsWith('signalbox'))
  expect(ours.map(({ calls }) => calls <= 80 && calls > 20)).toEqual([true])
})

test('workers in processes that count in Redis', async () => {
  const server = await startRedis()
  try {
    const options = ['--mode', 'processes', '--scenario', 'calm', '--seconds', '4', '--redis', server.url]
    const { strategies, stdout } = await compared(...options)
    expect(strategies.map(({ name }) => name)).toEqual([
      'signalbox file',
      'signalbox redis',
      'bottleneck redis',
      'rate-limiter-flexible redis',
    ])
    for (const { calls } of strategies) expect(calls).toBeGreaterThan(0)
    expect(strategies[1]!.calls).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/left out, because they do not count for several processes: .*, p-throttle/)
  } finally {
    await server.stop()
  }
})
