import type { Clock } from '../../base/clock.js'
import { pause } from '../../base/pause.js'
import { SqliteError } from './driver.js'
import { PATIENCE } from './failures.js'

/** Milliseconds between two attempts. */
const PAUSE = 5

/**
 * Tries again for as long as SQLite says that the database is locked. @throws SqliteError `BUSY` when that takes too
 * long.
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
