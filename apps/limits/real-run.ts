import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Run } from './figures.js'
import type { Order, Times } from './order.js'
import { realClock, wallOffset } from './real-clock.js'
import type { Service } from './service.js'
import type { Scenario } from './scenarios.js'
import { SECOND, type Setting } from './setting.js'
import type { Strategy } from './strategies/strategy.js'
import { sleep } from './strategies/waiting.js'

/** Minimum time between the order to begin and the beginning, in milliseconds. */
const HEAD_START = 200
/** Time to wait for the last calls to arrive, in milliseconds. */
const LAST = 500
/** Maximum number of processes over which workers are spread, in mode `processes`. */
const PROCESSES = 8

/**
 * Runs strategies at the same time for the duration of the setting, each in its own processes.
 * @param redis the URL of the server for strategies that count in Redis.
 * @param guard assumed variation of the time from a permit to the arrival of its call, in milliseconds.
 */
export async function realRuns(
  strategies: readonly Strategy[],
  setting: Setting,
  scenario: Scenario,
  service: Service,
  redis: string | undefined,
  guard: number,
): Promise<readonly Run[]> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-limits-'))
  const pathOf = ({ name }: Strategy): string => encodeURI(`/${scenario.name}/${setting.mode}/${name}`)
  const { stall } = scenario
  const orders = strategies.flatMap((one, index) =>
    spread(setting).map((workers): Order => ({
      strategy: one.name,
      setting,
      workers,
      port: service.port,
      path: pathOf(one),
      engine: one.onRedis ? redis! : `file:${join(folder, String(index))}`,
      name: `${basename(folder)}-${index}`,
      jitter: guard,
      stall,
    })),
  )
  const children = orders.map(start)
  const offset = wallOffset()
  let startAt: number
  try {
    await Promise.all(children.map(ready))
    // Starts at a whole second of the wall clock, so that the seconds of the run are calendar seconds.
    startAt = Math.ceil((realClock.now() + offset + HEAD_START) / SECOND) * SECOND - offset
    const endAt = startAt + setting.seconds * SECOND
    for (const child of children) child.send({ startAt, endAt } satisfies Times)
    await sleep(realClock, endAt + LAST - realClock.now())
  } finally {
    await Promise.all(children.map(end))
    await rm(folder, { recursive: true })
  }
  return Promise.all(
    strategies.map(async one => ({
      calls: await service.calls(pathOf(one)),
      startedAt: startAt,
      wallOffset: offset,
      guard: one.guarded ? guard : undefined,
    })),
  )
}

/** Returns the workers of each process. */
function spread({ workers, mode }: Setting): readonly (readonly number[])[] {
  const numbers = Array.from({ length: workers }, (_, index) => index)
  if (mode !== 'processes') return [numbers]
  const processes = Math.min(PROCESSES, workers)
  return Array.from({ length: processes }, (_, process) =>
    numbers.filter(number => number % processes === process),
  )
}

function start(order: Order): ChildProcess {
  const child = fork(fileURLToPath(new URL('./callers.process.js', import.meta.url)))
  child.send(order)
  return child
}

async function ready(child: ChildProcess): Promise<void> {
  const stopped = new AbortController()
  const { signal } = stopped
  const failed = once(child, 'exit', { signal }).then(([status]) => {
    throw new Error(`a process of callers ended with status ${String(status)}`)
  })
  try {
    await Promise.race([once(child, 'message', { signal }), failed])
  } finally {
    failed.catch(() => undefined)
    stopped.abort()
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  if (child.connected) child.disconnect()
  await ended
}
