import { fork, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { systemClock } from '../../src/base/clock.js'
import { pause } from '../../packages/conformance/src/time.js'
import { builtProgram } from '../support/built-program.js'
import type { CallReport, TenantTask } from '../support/limits/tenant.process.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { NaiveCount } from '../unit/limits/naive-count.js'

const PER = 2000
const CALLS = 100
const TOKENS = 5000
/** Covers the time for which a process can lose its processor between a permit and its call, in milliseconds. */
const JITTER = 30
/** Time until a used permit comes back, in milliseconds: the window, the jitter and the hold, a fiftieth of the window. */
const AWAY = PER + JITTER + PER / 50
const OPTIONS: TenantTask['options'] = {
  limits: [
    { limit: CALLS, per: PER, window: 'smooth' },
    { limit: TOKENS, per: PER, unit: 'tokens' },
  ],
  jitter: JITTER,
}
const PROCESSES = 8
/** Number of tenants in each process that call once a second. */
const OCCASIONAL = 2
const DURATION = 30_000
/** Delay of the link of the last process, one way, in milliseconds. */
const FAR = 40

/** Calls that processes have reported, by ID. The last report of a call counts. */
type Calls = ReadonlyMap<string, CallReport>

/**
 * Lets processes call for their tenants: one is killed and replaced again and again, one is stopped, and one is far
 * away.
 */
async function callsOf(url: string, farUrl: string, flood: number): Promise<Calls> {
  const calls = new Map<string, CallReport>()
  const socket = createSocket('udp4', message => {
    const call = JSON.parse(message.toString()) as CallReport
    calls.set(call.id, call)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  let seed = 0
  const start = (name: number): ChildProcess => {
    const occasional = Array.from({ length: OCCASIONAL }, (_, index) => `tenant ${name} ${index}`)
    const from = name === PROCESSES - 1 ? farUrl : url
    const task: TenantTask = { url: from, options: OPTIONS, port, seed: ++seed, flood, occasional }
    return fork(builtProgram('test/support/limits/tenant.process.js'), [JSON.stringify(task)], {
      execArgv: [],
    })
  }
  const children = Array.from({ length: PROCESSES }, (_, name) => start(name))
  try {
    await Promise.all(children.map(child => once(child, 'message')))
    const end = systemClock.now() + DURATION
    while (systemClock.now() < end) {
      await pause(1000)
      children[1]!.kill('SIGSTOP')
      await pause(500)
      children[1]!.kill('SIGCONT')
      await pause(1000)
      children[0]!.kill('SIGKILL')
      children[0] = start(0)
    }
    return calls
  } finally {
    for (const child of children) child.kill('SIGKILL')
    socket.close()
  }
}

/** Returns the maximum sum of amounts in any half-open interval of the window's length. */
function mostWithin(calls: readonly CallReport[], amountOf: (call: CallReport) => number): number {
  const count = new NaiveCount()
  const sorted = [...calls].sort((one, other) => one.at - other.at)
  for (const call of sorted) count.add(call.at, amountOf(call))
  return count.worst(PER)
}

/** Returns the waits of the tenants that call once a second, except in processes that are stopped or killed. */
function waitsOf(calls: readonly CallReport[]): number[] {
  const counted = calls.filter(({ tenant }) => /^tenant [2-7]/.test(tenant))
  return counted.map(({ waited }) => waited).sort((one, other) => one - other)
}

for (const engine of ['redis', 'postgres'] as const) {
  test(`${engine}: tenants of eight processes wait little beside a flood, and no bound is broken`, async () => {
    await using server = engine === 'redis' ? await startRedis() : await startPostgres()
    const port = Number(new URL(server.url).port)
    await using line = await Proxy.start(port)
    line.delay = FAR
    const farUrl = server.url.replace(String(port), String(line.port))
    const run = async (flood: number) => {
      const calls = [...(await callsOf(server.url, farUrl, flood)).values()]
      const waits = waitsOf(calls)
      return {
        median: waits[Math.floor(waits.length / 2)]!,
        p99: waits[Math.floor(0.99 * waits.length)]!,
        calls: mostWithin(calls, () => 1),
        tokens: mostWithin(calls, ({ tokens }) => tokens),
        used: calls.length / (CALLS * (DURATION / AWAY)),
        flood: calls.filter(({ tenant }) => tenant === 'flood').length,
        occasional: waits.length,
      }
    }
    const alone = await run(0)
    const beside = await run(50)
    console.log({ alone, beside })
    for (const seen of [alone, beside]) {
      expect(seen.calls).toBeLessThanOrEqual(CALLS)
      expect(seen.tokens).toBeLessThanOrEqual(TOKENS)
    }
    expect(beside.used).toBeGreaterThan(0.85)
    expect(beside.p99).toBeLessThan(2 * alone.p99 + 500)
    expect(beside.occasional).toBeGreaterThan(0.8 * alone.occasional)
  }, 200_000)
}
