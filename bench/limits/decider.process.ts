/** One of the threads that share a limit. */
import { parentPort, workerData } from 'node:worker_threads'
import { joinLimiter, type SharedLimiterHandle } from 'signalbox/limits'
import { now } from '../clock.js'
import { until } from '../processes/busy.js'
import type { Window } from '../processes/performer.js'

/** What one thread did. */
export interface Decided {
  /** Yes and no. */
  readonly decisions: number
  readonly permits: number
}

/** So many decisions between two looks at the clock. */
const BATCH = 100

const own = joinLimiter(workerData as SharedLimiterHandle)

parentPort!.on('message', ({ startAt, endAt }: Window) => {
  void until(startAt).then(() => {
    let decisions = 0
    let permits = 0
    for (; now() < endAt; decisions += BATCH) {
      for (let index = 0; index < BATCH; index++) if (own.tryAcquire() !== undefined) permits++
    }
    const decided: Decided = { decisions, permits }
    parentPort!.postMessage(decided)
  })
})
