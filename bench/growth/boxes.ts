import { GuardedFile } from '../file/guarded-file.js'
import { lockCycles } from '../file/lock-cycles.js'
import type { LockLibrary } from '../lockers/locker.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performer, Setting } from '../processes/performer.js'
import type { Work } from '../work.js'
import type { Engine, Peer } from './engines.js'

const SIZES = [1, 8, 32, 100]
/** Maximum number of processes that share the boxes. */
const MAX_PROCESSES = 4
/** Minimum share of the box with the fewest turns, as a part of a fair share. */
const LEAST_SHARE = 0.5

type Keys = 'own' | 'one'

/** Boxes with one caller each, in up to 4 processes. Each caller locks its own key, or all lock the same key. */
export function manyBoxes(engine: Engine): readonly Work[] {
  return (['own', 'one'] as const).flatMap(keys => SIZES.map(size => boxesOf(engine, keys, size)))
}

function boxesOf({ part, name: engine, signalbox, ownKeys, oneKey }: Engine, keys: Keys, size: number): Work {
  const peers = keys === 'own' ? ownKeys : oneKey
  const locked = keys === 'own' ? 'a key of its own each' : 'one key'
  const subjects = [{ library: signalbox }, ...peers].map(({ library }) =>
    subjectOf(library, keys, size, `${engine}: boxes, ${locked}`),
  )
  // A single box has no goal here, because other parts have one for it.
  const goalOf = ({ goal }: Peer) => (goal === undefined || size === 1 ? undefined : { atLeast: goal })
  return {
    part,
    name: `${engine}: ${size} ${size === 1 ? 'box' : 'boxes'}, ${locked}`,
    seconds: 3,
    subjects,
    comparisons: peers.map(peer => ({
      measure: 'opsPerSecond',
      of: signalbox.name,
      to: peer.library.name,
      goal: goalOf(peer),
    })),
    targets:
      keys === 'one' && size > 1
        ? [{ measure: 'least share', of: signalbox.name, goal: { atLeast: LEAST_SHARE / size } }]
        : [],
  }
}

function subjectOf(library: Peer['library'], keys: Keys, size: number, picture: string): ForkedSubject {
  const processes = Math.min(MAX_PROCESSES, size)
  const prepare: ForkedSubject['prepare'] = setting => {
    const own = keysOf(setting, keys, size)
    if ('open' in library) return performerOf(library, setting, own, keys === 'one')
    // A program in another language has one client in each process, and a thread for each box.
    return library.start({ ...setting, keys: own, tasks: own.length, isGuarded: keys === 'one' })
  }
  return forked(library.name, prepare, {
    processes,
    support: library.support,
    // A new process takes some seconds to compile its code.
    warmUp: 3,
    growth: { picture, line: library.name, size, unit: 'boxes' },
  })
}

/** Returns the keys of the boxes of one process. */
function keysOf({ process, processes }: Setting, keys: Keys, size: number): string[] {
  const own: string[] = []
  for (let box = process; box < size; box += processes) own.push(keys === 'own' ? `key-${box}` : 'key')
  return own
}

async function performerOf(
  library: LockLibrary,
  { folder, process }: Setting,
  keys: readonly string[],
  isGuarded: boolean,
): Promise<Performer> {
  const cyclers = await Promise.all(
    keys.map(async key => ({ locker: await library.open(folder, [key]), key })),
  )
  const section = isGuarded ? new GuardedFile(folder, process) : undefined
  return {
    async perform(window) {
      const { perTask: perBox, requested, ...performance } = await lockCycles(window, cyclers, section)
      return { ...performance, perBox, requested: isGuarded ? requested : undefined }
    },
    async stop() {
      section?.close()
      await Promise.all(cyclers.map(({ locker }) => locker.close()))
    },
  }
}
