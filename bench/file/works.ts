import type { LockLibrary } from '../lockers/locker.js'
import { forked } from '../processes/forked.js'
import type { Comparison, Work } from '../work.js'
import { GuardedFile } from './guarded-file.js'
import { lockCycles } from './lock-cycles.js'

/** Which libraries are measured, and how the first of them is to compare with the others. */
interface Field {
  readonly part: string
  readonly libraries: readonly LockLibrary[]
  readonly comparisons: readonly Comparison[]
}

/** One task that locks and unlocks one key. */
export function sequential({ part, libraries, comparisons }: Field): Work {
  const subjects = libraries.map(library =>
    forked(
      library.name,
      async ({ folder }) => {
        const locker = await library.open(folder, ['key'])
        return { perform: window => lockCycles(window, locker, 1, () => 'key'), stop: () => locker.close() }
      },
      { support: library.support },
    ),
  )
  return { part, name: 'lock and unlock one key', seconds: 0.7, subjects, comparisons }
}

/** Many tasks of one process, each with a key of its own. */
export function distinctKeys({ part, libraries, comparisons }: Field, tasks: number): Work {
  const keys = Array.from({ length: tasks }, (_, index) => `key-${index}`)
  const subjects = libraries.map(library =>
    forked(
      library.name,
      async ({ folder }) => {
        const locker = await library.open(folder, keys)
        return {
          perform: window => lockCycles(window, locker, tasks, task => keys[task]!),
          stop: () => locker.close(),
        }
      },
      { support: library.support },
    ),
  )
  return { part, name: `${tasks} tasks, each with its own key`, seconds: 0.7, subjects, comparisons }
}

/** Several processes with several tasks each that all want the same key. */
export function hotKey(
  { part, libraries, comparisons }: Field,
  { processes, tasks }: { readonly processes: number; readonly tasks: number },
): Work {
  const subjects = libraries.map(library =>
    forked(
      library.name,
      async ({ folder, process }) => {
        const locker = await library.open(folder, ['key'])
        const section = new GuardedFile(folder, process)
        return {
          perform: window => lockCycles(window, locker, tasks, () => 'key', section),
          async stop() {
            section.close()
            await locker.close()
          },
        }
      },
      { processes, support: library.support },
    ),
  )
  const by = processes === 1 ? `${tasks} tasks` : `${processes} processes with ${tasks} tasks each`
  const name = `one key wanted by ${by}`
  return { part, name, seconds: 2, subjects, comparisons }
}
