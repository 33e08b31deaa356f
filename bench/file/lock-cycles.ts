import { now } from '../clock.js'
import type { Locker } from '../lockers/locker.js'
import { until } from '../processes/busy.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'

/** A check of exclusion while a lock is held. Its functions return a description of a violation, if any. */
export interface Section {
  enter(token: bigint | undefined): string | undefined
  leave(): string | undefined
  close?(): void
}

/** A task and the lock that it takes. */
export interface Cycler {
  readonly locker: Locker
  readonly key: string
}

/** A performance with the operations of each task. */
export interface CyclePerformance extends Performance {
  readonly perTask: readonly number[]
}

/**
 * Runs tasks that lock, pass through a section and unlock, repeatedly. A cycle that ends after the window does not
 * count, but its wait does. That keeps the longest waits in the figures.
 */
export async function lockCycles(
  window: Window,
  tasks: readonly Cycler[],
  section?: Section,
): Promise<CyclePerformance> {
  const waits = new WaitLog()
  const requested = new WaitLog()
  const perTask = tasks.map(() => 0)
  let broken: string | undefined
  await until(window.startAt)
  const cycle = async ({ locker, key }: Cycler, index: number): Promise<void> => {
    for (let since = now(); since < window.endAt; since = now()) {
      const held = await locker.lock(key)
      requested.add(since)
      waits.add(now() - since)
      if (section) {
        broken ??= section.enter(held.token)
        // Lets another task of this process enter if exclusion fails.
        await PASSED
        broken ??= section.leave()
      }
      await held.unlock()
      if (now() <= window.endAt) perTask[index]!++
    }
  }
  await Promise.all(tasks.map(cycle))
  const operations = perTask.reduce((sum, cycles) => sum + cycles, 0)
  return { operations, perTask, waits: waits.values(), requested: requested.values(), broken }
}

const PASSED = Promise.resolve()
