import { fork, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { systemClock } from '../../../src/base/clock.js'
import type { BoxLimiterOptions } from '../../../src/index.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { builtProgram } from '../built-program.js'
import type { CallerTask } from './caller.process.js'

/** A call that has arrived. */
interface Arrival {
  readonly name: number
  readonly request: number
  /** Times of the machine's monotonic clock. */
  readonly sentAt: number
  readonly at: number
}

/** Options of {@link callService}. */
export interface CallOptions {
  readonly url: string
  readonly options: BoxLimiterOptions & { readonly limit: number; readonly per: number }
  readonly processes: number
  readonly tasks: number
  /** Milliseconds, counted from when all processes call. */
  readonly duration: number
  readonly stops: Stops
}

/** Repeated stops of some processes. */
export interface Stops {
  /** Number of processes that are stopped: the first ones. */
  readonly processes: number
  /** Duration of a stop, in milliseconds. */
  readonly stopped: number
  /** Time between two stops of a process, in milliseconds. */
  readonly between: number
}

/** The observations of the service. */
export interface Seen {
  readonly arrivals: readonly Arrival[]
  /** Start and end of the time in which all processes wanted permits. */
  readonly from: number
  readonly until: number
  readonly stops: number
  /** Exit statuses of processes that failed. */
  readonly failures: readonly string[]
}

/** Lets processes call a service, which counts the calls itself. */
export async function callService({ stops, duration, ...rest }: CallOptions): Promise<Seen> {
  const { url, options, processes, tasks } = rest
  const arrivals: Arrival[] = []
  const ready = new Set<number>()
  let allReady!: () => void
  const begun = new Promise<void>(resolve => (allReady = resolve))
  const socket = createSocket('udp4', message => {
    const [name, request, sentAt] = message.toString().split(' ').map(Number) as [number, number, number]
    if (request < 0) {
      if (ready.add(name).size === processes) allReady()
    } else arrivals.push({ name, request, sentAt, at: systemClock.now() })
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const children = Array.from({ length: processes }, (_, name) => {
    const task: CallerTask = { url, options, tasks, port: socket.address().port, name }
    return fork(builtProgram('test/support/limits/caller.process.js'), [JSON.stringify(task)], {
      execArgv: [],
    })
  })
  const endings = children.map(child => once(child, 'exit').then(([status]: unknown[]) => String(status)))
  try {
    // The failures show a process that ends too early.
    await Promise.race([begun, ...endings])
    const from = systemClock.now()
    const stopped = children.slice(0, stops.processes)
    const counts = await Promise.all(
      stopped.map((child, index) => stopAgainAndAgain(child, stops, index, from + duration)),
    )
    await pause(Math.max(from + duration - systemClock.now(), 0))
    const end = systemClock.now()
    for (const child of children) if (child.connected) child.send('enough')
    const failures = (await Promise.all(endings)).filter(status => status !== '0')
    // The last datagrams may still be under way.
    await pause(50)
    return { arrivals, from, until: end, stops: counts.reduce((sum, count) => sum + count, 0), failures }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    socket.close()
  }
}

/** Stops a process again and again, at other times than the other processes. @param end clock time */
async function stopAgainAndAgain(
  child: ChildProcess,
  { processes, stopped, between }: Stops,
  index: number,
  end: number,
): Promise<number> {
  await pause((index / processes) * (stopped + between))
  let stops = 0
  for (; systemClock.now() < end; stops++) {
    child.kill('SIGSTOP')
    await pause(stopped)
    child.kill('SIGCONT')
    await pause(between)
  }
  return stops
}

/** Returns the longest time between two successive times. */
export function longestGap(times: readonly number[]): number {
  const sorted = [...times].sort((one, other) => one - other)
  return Math.max(...sorted.slice(1).map((time, index) => time - sorted[index]!))
}

/** Returns the maximum number of times in any half-open interval of a length. */
export function mostWithin(times: readonly number[], length: number): number {
  const sorted = [...times].sort((one, other) => one - other)
  let most = 0
  let first = 0
  for (const [index, time] of sorted.entries()) {
    while (time - sorted[first]! >= length) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}

/** Returns the difference between the slowest and the fastest way of a call to the service, in milliseconds. */
export function jitterOf({ arrivals }: Seen): number {
  const ways = arrivals.map(({ at, sentAt }) => at - sentAt)
  return Math.max(...ways) - Math.min(...ways)
}

/** Whether each process got its permits in the order of its requests. */
export function isInOrder({ arrivals }: Seen): boolean {
  const last = new Map<number, number>()
  return arrivals.every(({ name, request }) => {
    const before = last.get(name) ?? -1
    last.set(name, request)
    return request > before
  })
}
