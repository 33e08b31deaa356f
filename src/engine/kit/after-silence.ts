import type { Clock } from '../../base/clock.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

/** A process that has heard nothing for this long may have been frozen, in milliseconds. */
export const SILENCE = 50
/** A socket reads its end in one turn of the event loop, answers it in the next, and reports it at the end of that. */
const TURNS = 4

/** Resolves when the process has read what had arrived from the network. */
export async function arrivalsRead(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++)
    await new Promise<void>(resolve => runtimeTimers.setImmediate(resolve))
}

/**
 * Returns a function that does work over a connection. After a silence or a failure, it first lets the process read
 * what has arrived from the network, so that it knows which connections have ended meanwhile, and nothing is lost with
 * them. Work begins in the order of the calls.
 */
export function afterSilence(clock: Clock): <T>(work: () => Promise<T>) => Promise<T> {
  let heardAt = -Infinity
  let reading: Promise<void> | undefined
  return async work => {
    if (reading || clock.now() - heardAt > SILENCE) {
      const current = (reading ??= arrivalsRead())
      await current
      if (reading === current) reading = undefined
    }
    try {
      const result = await work()
      heardAt = clock.now()
      return result
    } catch (error) {
      heardAt = -Infinity
      throw error
    }
  }
}
