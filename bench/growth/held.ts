import { lockCycles } from '../file/lock-cycles.js'
import type { Locker, LockLibrary } from '../lockers/locker.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performer, Setting } from '../processes/performer.js'
import type { Work } from '../work.js'
import { comparedToFirst } from './compared.js'
import type { Engine } from './engines.js'

const SIZES = [10, 1000, 20_000]
/** Number of keys that are locked in parallel. */
const AT_ONCE = 64

/** A lone lock while another process holds many keys. */
export function heldKeys({ part, name: engine, signalbox, beside }: Engine): Work {
  const libraries = beside ? [signalbox, beside] : [signalbox]
  const subject = (library: LockLibrary, size: number): ForkedSubject =>
    forked(nameOf(library, size), setting => performerOf(library, setting, size), {
      processes: 2,
      support: library.support,
      growth: {
        picture: `${engine}: keys held by another process`,
        line: library.name,
        size,
        unit: 'keys held',
      },
    })
  return {
    part,
    name: `${engine}: lock and unlock one key next to others that are held`,
    seconds: 1,
    subjects: libraries.flatMap(library => SIZES.map(size => subject(library, size))),
    comparisons: libraries.flatMap(library =>
      comparedToFirst(
        SIZES.map(size => nameOf(library, size)),
        library === signalbox ? { atLeast: 0.8 } : undefined,
      ),
    ),
  }
}

function nameOf({ name }: LockLibrary, size: number): string {
  return `${name}, ${size} keys held`
}

async function performerOf(
  library: LockLibrary,
  { folder, process }: Setting,
  size: number,
): Promise<Performer> {
  const isHolder = process === 0
  const keys = isHolder ? Array.from({ length: size }, (_, index) => `held-${index}`) : ['key']
  const locker = await library.open(folder, keys)
  if (isHolder) await lockAll(locker, keys)
  return {
    async perform(window) {
      const {
        perTask: _,
        requested: __,
        ...performance
      } = await lockCycles(window, isHolder ? [] : [{ locker, key: 'key' }])
      return { ...performance, perBox: [] }
    },
    stop: () => locker.close(),
  }
}

async function lockAll(locker: Locker, keys: readonly string[]): Promise<void> {
  const left = [...keys]
  const task = async (): Promise<void> => {
    for (let key = left.pop(); key !== undefined; key = left.pop()) await locker.lock(key)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, task))
}
