import { now } from '../clock.js'
import { WaitLog } from '../wait-log.js'
import type { Performance, Window } from './performer.js'

/** So many operations are done between two looks at the clock. */
const BATCH = 100

/** The fast way and the timed way of the same operation. */
export interface Operations {
  /** Does a number of them one after another. */
  readonly batch: (count: number) => Promise<void>
  /** Does one and gives how long it waited, in milliseconds. */
  readonly timed: () => Promise<number>
}

/** Work whose single operation takes about as long as reading the clock: one in a hundred is timed. */
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

/** Waits for a time of the machine's monotonic clock. */
export async function until(time: number): Promise<void> {
  const left = time - now()
  if (left > 0) await new Promise(resolve => setTimeout(resolve, left))
}
