import { runtimeTimers } from '../../runtime-timers.js'

/** A process that has heard nothing for this long may have been frozen, in milliseconds. */
export const SILENCE = 50
/** A socket reads its end in one turn of the event loop, answers it in the next, and reports it at the end of that. */
const TURNS = 4

/**
 * Resolves when the process has read everything that had arrived from the network, and so knows which connections have
 * ended: those of a process that was frozen may have ended long ago.
 */
export async function arrivalsRead(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++)
    await new Promise<void>(resolve => runtimeTimers.setImmediate(resolve))
}
