import { now } from '../clock.js'
import { WaitLog } from '../wait-log.js'
import type { Performance, Window } from './performer.js'

/** Number of operations between two readings of the clock. */
const BATCH = 100

/** The same operation in two versions, fast and timed. */
export interface Operations {
  /** Performs a number of operations one after another. */
  readonly batch: (count: number) => Promise<void>
  /** Performs one operation. Returns its wait, in milliseconds. */
  readonly timed: () => Promise<number>
}

/** Performs work whose operations take about as long as reading the clock. Times about one operation in a hundred. */
export async function busy(window: Window, tasks: number, operations: Operations): Promise<Performance> {
  const waits = new WaitLog()
  let done = 0
  await until(window.startAt)
  const task = async (): Promise<void> => {
    while (now() < window.endAt) {
      await operations.batch(BATCH)
      waits.add(await operations.timed())
      done += BATCH + 1
    }
  }
  await Promise.all(Array.from({ length: tasks }, task))
  return { operations: done, doneAt: now(), waits: waits.values() }
}

/** Waits until a time of the machine's monotonic clock. */
export async function until(time: number): Promise<void> {
  const left = time - now()
  if (left > 0) await new Promise(resolve => setTimeout(resolve, left))
}
