import { runtimeTimers } from '../../runtime-timers.js'

/** Resolves when the callers whose permits have arrived have them, because each gets its permit in a microtask. */
export function othersServed(): Promise<void> {
  return new Promise(resolve => void runtimeTimers.setImmediate(resolve))
}
