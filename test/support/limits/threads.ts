import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import { pause } from '../../../packages/conformance/src/time.js'
import {
  sharedLimiter,
  type SharedLimiterHandle,
  type SharedLimiterOptions,
} from '../../../src/limits/index.js'
import { builtProgram } from '../built-program.js'

/** The task of a thread. */
export interface SharerTask {
  readonly handle: SharedLimiterHandle
  /** Duration of its repeated stalls, in milliseconds; 0 for none. */
  readonly stalls: number
  /** Whether it refunds half of its permits. */
  readonly refunds: boolean
  readonly seed: number
}

/** Times at which it got the permits that it used, by both clocks. */
export interface SharerTimes {
  readonly times: readonly number[]
  readonly wallTimes: readonly number[]
}

/** Options of {@link shareLimit}. */
export interface ShareOptions {
  readonly limits: SharedLimiterOptions
  readonly threads: number
  /** Time for which all of them take permits, in milliseconds. */
  readonly duration: number
  /** Duration of the repeated stalls of the first thread, in milliseconds. */
  readonly stalls?: number
  readonly refunds?: boolean
}

/** The permits of several threads. */
export interface Shared {
  /** The times at which each thread got the permits that it used: clock times. */
  readonly times: readonly (readonly number[])[]
  /** The same by the wall clock, if a limit needs it. */
  readonly wallTimes: readonly (readonly number[])[]
  /** Start and end of the time in which all threads wanted permits. */
  readonly from: number
  readonly until: number
  /** Share of one processor that this process used in that time, from 0 to 1. */
  readonly busy: number
}

/** Lets threads take permits as fast as they get them. */
export async function shareLimit(options: ShareOptions): Promise<Shared> {
  const { limits, threads: count, duration, stalls = 0, refunds = false } = options
  const { handle } = sharedLimiter(limits)
  const threads = Array.from({ length: count }, (_, seed) => {
    const workerData: SharerTask = { handle, stalls: seed === 0 ? stalls : 0, refunds, seed: seed + 1 }
    return new Worker(builtProgram('test/support/limits/sharer.process.js'), { workerData })
  })
  try {
    await Promise.all(threads.map(thread => once(thread, 'message')))
    const from = systemClock.now()
    const before = process.cpuUsage()
    await pause(duration)
    const { user, system } = process.cpuUsage(before)
    const until = systemClock.now()
    const notes = threads.map(async thread => {
      const note = once(thread, 'message')
      thread.postMessage('enough')
      const [times] = (await note) as [SharerTimes]
      return times
    })
    const all = await Promise.all(notes)
    return {
      times: all.map(({ times }) => times),
      wallTimes: all.map(({ wallTimes }) => wallTimes),
      from,
      until,
      busy: (user + system) / 1000 / (until - from),
    }
  } finally {
    await Promise.all(threads.map(thread => thread.terminate()))
  }
}
