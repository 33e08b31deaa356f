import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { sharedLimiter } from 'signalbox/limits'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import type { Work } from '../work.js'
import type { Decided } from './decider.process.js'

const THREADS = 4
/** The greatest limit that threads can share. */
const LIMIT = 1e6

/** @param per in milliseconds. @param counted the figure that counts as the number of operations. */
function deciders(name: string, per: number, counted: keyof Decided): ForkedSubject {
  return forked(name, async () => {
    const { handle } = sharedLimiter({ limit: LIMIT, per })
    const threads = Array.from(
      { length: THREADS },
      () => new Worker(new URL('./decider.process.js', import.meta.url), { workerData: handle }),
    )
    await Promise.all(threads.map(thread => once(thread, 'online')))
    return {
      perform: window => performed(threads, window, counted),
      stop: async () => {
        await Promise.all(threads.map(thread => thread.terminate()))
      },
    }
  })
}

const DECISIONS = 'signalbox'
const PERMITS = 'signalbox, permits'

/**
 * Decisions of several threads about one limit. With a million permits per second, most decisions are no. With a
 * million per hundredth of a second, nearly all are yes, and only those count.
 */
export const sharedPermits: Work = {
  part: 'limits',
  name: `decisions of ${THREADS} threads about one limit`,
  seconds: 1,
  subjects: [deciders(DECISIONS, 1000, 'decisions'), deciders(PERMITS, 10, 'permits')],
  comparisons: [],
  targets: [DECISIONS, PERMITS].map(of => ({ measure: 'opsPerSecond' as const, of, goal: { atLeast: 3e6 } })),
}

async function performed(
  threads: readonly Worker[],
  window: Window,
  counted: keyof Decided,
): Promise<Performance> {
  const counts = await Promise.all(
    threads.map(async thread => {
      const answer = once(thread, 'message')
      thread.postMessage(window)
      const [decided] = (await answer) as [Decided]
      return decided[counted]
    }),
  )
  return { operations: counts.reduce((sum, count) => sum + count, 0), waits: new Float64Array() }
}
