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

/** What a thread is given. */
export interface SharerTask {
  readonly handle: SharedLimiterHandle
  /** How long it stands still again and again: milliseconds, 0 for never. */
  readonly stalls: number
  /** Whether it gives half of its permits back. */
  readonly refunds: boolean
  readonly seed: number
}

/** When it was given the permits that it used, by both clocks. */
export interface SharerTimes {
  readonly times: readonly number[]
  readonly wallTimes: readonly number[]
}

/** How threads share limits. */
export interface ShareOptions {
  readonly limits: SharedLimiterOptions
  readonly threads: number
  /** How long all of them take permits, in milliseconds. */
  readonly duration: number
  /** How long the first thread stands still again and again, in milliseconds. */
  readonly stalls?: number
  readonly refunds?: boolean
}

/** What threads have had. */
export interface Shared {
  /** When each was given the permits that it used: by thread, clock times. */
  readonly times: readonly (readonly number[])[]
  /** The same by the wall clock, where a limit needs it. */
  readonly wallTimes: readonly (readonly number[])[]
  /** From when on all threads wanted permits, until when. */
  readonly from: number
  readonly until: number
  /** How much of one processor this process took in that time: 1 is all of it. */
  readonly busy: number
}

/** Has threads take permits as fast as they get them. */
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
      const [told] = (await note) as [SharerTimes]
      return told
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
