import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { sharedLimiter } from 'signalbox/limits'
import { forked } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import type { Work } from '../work.js'

const THREADS = 4
/** The greatest that threads can share. */
const LIMIT = 1e6

/** Decisions of several threads about one limit, yes and no: more are asked for than there are permits. */
export const sharedPermits: Work = {
  part: 'limits',
  name: `decisions of ${THREADS} threads about one limit`,
  seconds: 1,
  subjects: [
    forked('signalbox', async () => {
      const { handle } = sharedLimiter({ limit: LIMIT, per: '1s' })
      const threads = Array.from(
        { length: THREADS },
        () => new Worker(new URL('./decider.process.js', import.meta.url), { workerData: handle }),
      )
      await Promise.all(threads.map(thread => once(thread, 'online')))
      return {
        perform: window => performed(threads, window),
        stop: async () => {
          await Promise.all(threads.map(thread => thread.terminate()))
        },
      }
    }),
  ],
  comparisons: [],
  targets: [{ measure: 'opsPerSecond', of: 'signalbox', goal: { atLeast: 3e6 } }],
}

async function performed(threads: readonly Worker[], window: Window): Promise<Performance> {
  const counts = await Promise.all(
    threads.map(async thread => {
      const answer = once(thread, 'message')
      thread.postMessage(window)
      const [count] = (await answer) as [number]
      return count
    }),
  )
  return { operations: counts.reduce((sum, count) => sum + count, 0), waits: new Float64Array() }
}
