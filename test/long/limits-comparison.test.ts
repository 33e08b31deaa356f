import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Figures } from '../../apps/limits/figures.js'
import { runProgram } from '../support/run-program.js'
import { startRedis } from '../support/servers/redis.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-limits-'))
})

afterAll(() => rm(folder, { recursive: true }))

interface Report {
  /** The figures of the first scenario. */
  readonly strategies: readonly Figures[]
  readonly scenarios: readonly { readonly name: string; readonly strategies: readonly Figures[] }[]
}

/** Runs the comparison against its service, and returns its output and its report. */
async function compared(...options: string[]) {
  const json = join(folder, 'report.json')
  const svg = join(folder, 'picture.svg')
  const argv = ['dist/apps/limits/main.js', '--seconds', '3', '--json', json, '--picture', svg, ...options]
  const { stdout } = await runProgram(process.execPath, argv, { cwd: root, timeLimit: 600_000 })
  expect(await readFile(svg, 'utf8')).toMatch(/^<svg /)
  return { stdout, ...(JSON.parse(await readFile(json, 'utf8')) as Report) }
}

const LIMIT = 20
const MAX_RUNS = 3

/**
 * Returns the figures of Signalbox's strategies that exceeded their limit: sliding and smooth in any second, calendar
 * in seconds of the clock.
 */
function above(strategies: readonly Figures[]): readonly Figures[] {
  return strategies.filter(({ name, worstGranted, worstCalendarSecond }) => {
    const worst = name === 'signalbox calendar' ? worstCalendarSecond : worstGranted
    return name.startsWith('signalbox') && worst > LIMIT
  })
}

/**
 * Runs the calm scenario, in which Signalbox's strategies must keep the limit. Their windows are longer by the usual
 * difference between the delays of calls. On a busy machine the delays differ by more, so the best of several runs of
 * each strategy counts.
 */
async function comparedCalm(...options: string[]) {
  const calm = ['--scenario', 'calm', ...options]
  const outcome = await compared(...calm)
  let failing = above(outcome.strategies)
  for (let run = 1; run < MAX_RUNS && failing.length > 0; run++) {
    const again: Figures[] = []
    for (const { name } of failing) again.push(...(await compared(...calm, '--only', name)).strategies)
    failing = above(again)
  }
  expect(failing).toEqual([])
  return outcome
}

test('the mistakes of other limiters, in all scenarios against the service', async () => {
  const { scenarios, stdout } = await compared()
  expect(stdout.match(/^strategy /gm)!.length).toBe(5)
  const [calm, late, later] = ['calm', 'late', 'later'].map(name => {
    const { strategies } = scenarios.find(one => one.name === name)!
    return new Map(strategies.map(one => [one.name, one]))
  }) as [Map<string, Figures>, Map<string, Figures>, Map<string, Figures>]
  expect(calm.size).toBe(17)
  // A limit that is reset every second lets nearly twice the limit through around the end of a second.
  for (const name of ['scheduled refill', 'counter, packed', 'ring of 60 semaphores', 'timed semaphore'])
    expect(calm.get(name)!.worstWindow, name).toBeGreaterThan(LIMIT)
  // All callers sleep, so none of them notices that the second is over.
  expect(calm.get('first caller refill')!.calls).toBeLessThanOrEqual(LIMIT)
  // This strategy does not count callers that slept until the next second.
  const usual = calm.get('counter, usual')!
  expect(usual.calls).toBeGreaterThan(1.5 * usual.ideal)
  expect(usual.worstCalendarSecond).toBeGreaterThan(LIMIT)
  // The 60 semaphores tolerate a restorer that is 40 s late, but not one that is 60 s late.
  expect(late.get('ring of 60 semaphores')!.idleSeconds).toBe(0)
  expect(later.get('ring of 60 semaphores')!.idleSeconds).toBeGreaterThan(0)
  expect(late.get('ring of 60 counters')!.idleSeconds).toBeGreaterThan(0)
  for (const run of [late, later]) {
    expect(run.get('signalbox sliding')).toMatchObject({ idleSeconds: 0, worstWindow: LIMIT })
    expect(run.get('counter, usual')!.worstCalendarSecond).toBeGreaterThan(LIMIT)
  }
})

test.each(['sliding', 'calendar', 'smooth'])(
  '%s of ours keeps the limit where calls arrive',
  async window => {
    const { strategies } = await comparedCalm('--only', `signalbox ${window}`)
    expect(strategies).toHaveLength(1)
    expect(strategies[0]!.calls).toBeGreaterThan(LIMIT)
  },
)

test.each([
  ['threads', 'signalbox sliding'],
  ['threads', 'signalbox calendar'],
  ['threads', 'signalbox smooth'],
  ['processes', 'signalbox file'],
])('our limiters of workers in %s keep it, too', async (mode, name) => {
  // Few workers, because most of the time is spent on starting them.
  const { strategies } = await comparedCalm('--mode', mode, '--only', name, '--workers', '20')
  expect(strategies).toHaveLength(1)
  expect(strategies[0]!.calls).toBeGreaterThan(LIMIT)
})

test('our limiters of processes that count in Redis keep it, too', async () => {
  const server = await startRedis()
  try {
    const { strategies, stdout } = await comparedCalm('--mode', 'processes', '--redis', server.url)
    expect(strategies.map(({ name }) => name)).toEqual([
      'signalbox file',
      'signalbox redis',
      'bottleneck redis',
      'rate-limiter-flexible redis',
    ])
    for (const { calls } of strategies) expect(calls).toBeGreaterThan(0)
    expect(stdout).toMatch(/left out, because they do not count for several processes: .*, p-throttle/)
  } finally {
    await server.stop()
  }
})
