import type { Clock } from '../../base/clock.js'
import { pause } from '../../base/pause.js'
import { SqliteError } from './driver.js'
import { PATIENCE } from './failures.js'

/** Delay between two attempts, in milliseconds. */
const PAUSE = 5

/**
 * Retries an attempt while the database is locked. @throws SqliteError `BUSY` when it stays locked for {@link
 * PATIENCE}.
 */
export async function retryWhileBusy(clock: Clock, attempt: () => void): Promise<void> {
  const until = clock.now() + PATIENCE
  for (;;) {
    try {
      attempt()
      return
    } catch (error) {
      if (!(error instanceof SqliteError && error.code === 'BUSY') || clock.now() >= until) throw error
      await pause(PAUSE, clock)
    }
  }
}
