import { drawSchedule } from './schedule.js'
import { simulate, type Result } from './simulate.js'
import type { Sources } from './sources.js'

/** Maximum number of runs. */
const RUNS = 500

/**
 * Finds a small number of actions of a schedule that break the same promise, by leaving out as many as possible. The
 * random events of the network depend on the remaining actions, so the result may fail for another reason.
 */
export async function reduced(whole: Result, sources: Sources): Promise<Result> {
  let shortest = whole
  let chosen = drawSchedule(whole.seed).actions.map((_, index) => index)
  let runs = 0
  for (let size = chosen.length >> 1; size > 0 && runs < RUNS; size >>= 1) {
    for (let start = 0; start < chosen.length && runs < RUNS; runs++) {
      const fewer = chosen.toSpliced(start, size)
      const result = await simulate(whole.seed, sources, new Set(fewer))
      if (result.violation?.promise === whole.violation?.promise) {
        chosen = fewer
        shortest = result
      } else start += size
    }
  }
  return shortest
}
