import { eagerLockfile, ourLockfile, patientLockfile } from '../lockers/proper-lockfile.js'
import type { Work } from '../work.js'
import { killedHolder } from './killed-holder.js'
import { hotKey, sequential } from './works.js'

const part = 'lockfile'
const comparison = { of: ourLockfile.name, to: patientLockfile.name } as const

/** Lock files: Signalbox's module with the functions of proper-lockfile, compared with proper-lockfile. */
export const lockfileWorks: readonly Work[] = [
  sequential({
    part,
    libraries: [ourLockfile, patientLockfile],
    comparisons: [{ ...comparison, measure: 'opsPerSecond' }],
  }),
  hotKey(
    {
      part,
      libraries: [ourLockfile, patientLockfile, eagerLockfile],
      comparisons: [patientLockfile, eagerLockfile].map(({ name }) => ({
        measure: 'worst wait',
        of: ourLockfile.name,
        to: name,
        goal: { atMost: 1 / 10 },
      })),
    },
    { processes: 4, tasks: 1 },
  ),
  killedHolder(part, [ourLockfile, patientLockfile], {
    ...comparison,
    measure: 'worst wait',
    goal: { atMost: 1 / 50 },
  }),
]
