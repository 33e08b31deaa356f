import type { Work } from '../work.js'
import { localPermits } from './local.js'
import { redisPermits } from './redis.js'
import { sharedPermits } from './threads.js'
import { throttlerStorages } from './throttler.js'

/** Rate limits within one process and on a server. */
export const limitWorks: readonly Work[] = [localPermits, sharedPermits, redisPermits, throttlerStorages]
