import type { ForeignLibrary, LockLibrary, Tasks } from '../lockers/locker.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performer } from '../processes/performer.js'
import type { Comparison, Work } from '../work.js'
import { GuardedField } from './guarded-field.js'
import { GuardedFile } from './guarded-file.js'
import { lockCycles, type Section } from './lock-cycles.js'

/** The libraries to measure, and the comparisons of the first of them with the others. */
interface Field {
  readonly part: string
  readonly libraries: readonly (LockLibrary | ForeignLibrary)[]
  readonly comparisons: readonly Comparison[]
}

/** One task that locks and unlocks one key. */
export function sequential({ part, libraries, comparisons }: Field): Work {
  const subjects = cycling(libraries, { keys: ['key'], tasks: 1 })
  return { part, name: 'lock and unlock one key', seconds: 0.7, subjects, comparisons }
}

/** Many tasks of one process, each with its own key. */
export function distinctKeys({ part, libraries, comparisons }: Field, tasks: number): Work {
  const keys = Array.from({ length: tasks }, (_, index) => `key-${index}`)
  const subjects = cycling(libraries, { keys, tasks })
  return { part, name: `${tasks} tasks, each with its own key`, seconds: 0.7, subjects, comparisons }
}

/** Several processes with several tasks each that all want the same key. */
export function hotKey(
  { part, libraries, comparisons }: Field,
  { processes, tasks }: { readonly processes: number; readonly tasks: number },
): Work {
  const subjects = cycling(libraries, { keys: ['key'], tasks, isGuarded: true }, processes)
  const each = tasks === 1 ? '' : ` with ${tasks} tasks each`
  const by = processes === 1 ? `${tasks} tasks` : `${processes} processes${each}`
  const name = `one key wanted by ${by}`
  return { part, name, seconds: 2, subjects, comparisons }
}

/** Makes a subject of each library, whose tasks lock and unlock. */
function cycling(
  libraries: Field['libraries'],
  wanted: Pick<Tasks, 'keys' | 'tasks'> & Partial<Pick<Tasks, 'isGuarded'>>,
  processes = 1,
): ForkedSubject[] {
  return libraries.map(library => {
    const prepare: ForkedSubject['prepare'] = setting => {
      const tasks = { isGuarded: false, ...wanted, ...setting }
      return 'open' in library ? performerOf(library, tasks) : library.start(tasks)
    }
    const warmUp = 'warmUp' in library ? library.warmUp : undefined
    return forked(library.name, prepare, { processes, support: library.support, warmUp })
  })
}

async function performerOf(
  library: LockLibrary,
  { folder, process, processes, keys, tasks, isGuarded }: Tasks,
): Promise<Performer> {
  const locker = await library.open(folder, keys)
  const section = isGuarded ? sectionOf(folder, process, processes) : undefined
  return {
    perform(window) {
      const cyclers = Array.from({ length: tasks }, (_, task) => ({ locker, key: keys[task % keys.length]! }))
      return lockCycles(window, cyclers, section)
    },
    async stop() {
      section?.close?.()
      await locker.close()
    },
  }
}

/** Returns a section that all tasks share, in one process or in several. */
function sectionOf(folder: string, process: number, processes: number): Section {
  return processes === 1 ? new GuardedField() : new GuardedFile(folder, process)
}
