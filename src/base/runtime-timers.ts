import { hrtime, nextTick } from 'node:process'
import { clearTimeout, setImmediate, setTimeout } from 'node:timers'

/**
 * The timers, queues and monotonic clock of the runtime, as they are when this module is loaded. Fake timers of a test
 * runner replace the public ones later, but they do not replace the time of a server or of other processes.
 */
export const runtimeTimers = { setTimeout, clearTimeout, setImmediate, nextTick, queueMicrotask, hrtime }
