import type { Clock } from 'signalbox/limits'
import { SECOND } from '../setting.js'
import type { World } from './strategy.js'

/** Resolves after a number of milliseconds. */
export function sleep(clock: Clock, duration: number): Promise<void> {
  return new Promise(resolve => clock.after(duration, resolve, true))
}

/** Resolves at this time of the clock, never before: timers can be a little early. */
export async function sleepUntil(clock: Clock, time: number): Promise<void> {
  while (clock.now() < time) await sleep(clock, time - clock.now())
}

/** The second that the wall clock shows. */
export function secondOf({ wall }: World): number {
  return Math.floor(wall() / SECOND)
}

/** Resolves when the next second of the wall clock begins, or a little before: timers are not exact. */
export function nextSecond({ clock, wall }: World): Promise<void> {
  return sleep(clock, SECOND - (wall() % SECOND))
}

/** Does something again and again, on a schedule that doesn't drift: what is late is made up for. */
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
