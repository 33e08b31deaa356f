import type { Work } from '../work.js'
import { localPermits } from './local.js'
import { sharedPermits } from './threads.js'

/** Rate limits within one process. */
export const limitWorks: readonly Work[] = [localPermits, sharedPermits]
