/** A thread that shares a limit with others. */
import { parentPort, workerData } from 'node:worker_threads'
import { joinLimiter, type SharedLimiterHandle } from 'signalbox/limits'
import { now } from '../clock.js'
import { until } from '../processes/busy.js'
import type { Window } from '../processes/performer.js'

/** Results of one thread. */
export interface Decided {
  /** Number of attempts to take a permit, successful or not. */
  readonly decisions: number
  readonly permits: number
}

/** Number of decisions between two readings of the clock. */
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
