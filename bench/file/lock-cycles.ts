import { now } from '../clock.js'
import type { Locker } from '../lockers/locker.js'
import { until } from '../processes/busy.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'

/** What is checked while a lock is held; returns what was wrong. */
export interface Section {
  enter(token: bigint | undefined): string | undefined
  leave(): string | undefined
  close?(): void
}

/**
 * Tasks that each lock, pass through a section and unlock, over and over. What ends after the window does not count,
 * but how long it waited does, so that the longest waits are not cut off.
 * @param keyOf the key of each task.
 */
export async function lockCycles(
  window: Window,
  locker: Locker,
  tasks: number,
  keyOf: (task: number) => string,
  section?: Section,
): Promise<Performance> {
  const waits = new WaitLog()
  const requested = new WaitLog()
  let operations = 0
  let broken: string | undefined
  await until(window.startAt)
  const task = async (key: string): Promise<void> => {
    for (let since = now(); since < window.endAt; since = now()) {
      const held = await locker.lock(key)
      requested.add(since)
      waits.add(now() - since)
      if (section) {
        broken ??= section.enter(held.token)
        // So that another task of this process could come in.
        await PASSED
        broken ??= section.leave()
      }
      await held.unlock()
      if (now() <= window.endAt) operations++
    }
  }
  await Promise.all(Array.from({ length: tasks }, (_, index) => task(keyOf(index))))
  return { operations, waits: waits.values(), requested: requested.values(), broken }
}

const PASSED = Promise.resolve()
