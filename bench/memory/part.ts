import type { Work } from '../work.js'
import { acquireAndRelease } from './acquire-and-release.js'

/** Locks within one process. */
export const memoryWorks: readonly Work[] = [
  acquireAndRelease('acquire and release, no waiter', 1),
  acquireAndRelease('acquire and release, 64 tasks want it', 64),
]
