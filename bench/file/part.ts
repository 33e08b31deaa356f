import { liveMutex } from '../lockers/live-mutex.js'
import { eagerLockfile, patientLockfile } from '../lockers/proper-lockfile.js'
import { signalboxFile } from '../lockers/signalbox-file.js'
import type { Comparison, Goal, Work } from '../work.js'
import { distinctKeys, hotKey, sequential } from './works.js'

function faster(to: string, atLeast?: number): Comparison {
  const goal: Goal | undefined = atLeast === undefined ? undefined : { atLeast }
  return { measure: 'opsPerSecond', of: 'signalbox', to, goal }
}

function waitsLess(to: string, atMost?: number): Comparison {
  const goal: Goal | undefined = atMost === undefined ? undefined : { atMost }
  return { measure: 'worst wait', of: 'signalbox', to, goal }
}

// No process waits for a lock in these works, so the retries of proper-lockfile make no difference.
const free = [signalboxFile, patientLockfile, liveMutex]

/** Locks between processes, with the file engine. */
export const fileWorks: readonly Work[] = [
  sequential({
    part: 'file',
    libraries: free,
    comparisons: [faster('proper-lockfile', 10), faster('live-mutex', 2)],
  }),
  distinctKeys(
    { part: 'file', libraries: free, comparisons: [faster('proper-lockfile'), faster('live-mutex')] },
    64,
  ),
  hotKey(
    {
      part: 'file',
      libraries: [signalboxFile, patientLockfile, eagerLockfile, liveMutex],
      comparisons: [
        faster('proper-lockfile', 50),
        waitsLess('proper-lockfile', 1 / 10),
        faster('proper-lockfile, looking every 5 ms', 50),
        waitsLess('proper-lockfile, looking every 5 ms', 1 / 10),
        faster('live-mutex'),
        waitsLess('live-mutex'),
      ],
    },
    { processes: 4, tasks: 4 },
  ),
]
