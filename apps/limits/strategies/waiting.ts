import type { Clock } from 'signalbox/limits'
import { SECOND } from '../setting.js'
import type { World } from './strategy.js'

/** Resolves after `duration` milliseconds. */
export function sleep(clock: Clock, duration: number): Promise<void> {
  return new Promise(resolve => clock.after(duration, resolve, true))
}

/** Resolves at this time of the clock or later. A timer that fires early is set again. */
export async function sleepUntil(clock: Clock, time: number): Promise<void> {
  while (clock.now() < time) await sleep(clock, time - clock.now())
}

/** Returns the current second of the wall clock. */
export function secondOf({ wall }: World): number {
  return Math.floor(wall() / SECOND)
}

/** Resolves at the start of the next second of the wall clock, or a little before, because timers are not exact. */
export function nextSecond({ clock, wall }: World): Promise<void> {
  return sleep(clock, SECOND - (wall() % SECOND))
}

/** Runs a job repeatedly, on a schedule that does not drift. Runs that were missed follow without a pause. */
export function every(clock: Clock, interval: number, job: () => void): void {
  const startedAt = clock.now()
  let times = 0
  const next = (): void => {
    times++
    clock.after(
      startedAt + times * interval - clock.now(),
      () => {
        job()
        next()
      },
      false,
    )
  }
  next()
}
