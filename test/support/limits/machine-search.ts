import { MachineWorld, termsOf, type Modules, type WorldEvent } from './machine-world.js'

/** The outcome of a search. */
export interface Searched {
  /** Number of different states. */
  readonly states: number
  /** The shortest sequence of events that breaks a promise, and a message about the promise. */
  readonly broken: { readonly events: readonly WorldEvent[]; readonly message: string } | undefined
}

interface Path {
  readonly events: readonly WorldEvent[]
  readonly next: readonly WorldEvent[]
}

/** Events after which a search begins, so that it soon gets to rare states. */
const BEGINNINGS: readonly (readonly WorldEvent[])[] = [
  [],
  ['come', 'step', 'now'],
  // One caller more than reserved permits.
  ['come', 'come', 'come', 'step', 'later', 'reply', 'step', 'step'],
  // All callers have left, and the call that returns one of two permits is under way.
  [
    ...['come', 'come', 'come', 'step', 'later', 'reply', 'step', 'step'],
    ...['first-gives-up', 'first-gives-up', 'step', 'first-gives-up'],
  ] as WorldEvent[],
  // All turns are beyond the horizon.
  ['come', 'come', 'step', 'beyond', 'reply', 'step', 'step'],
  // The engine is out of reach, and a permit is to be returned.
  ['come', 'step', 'now', 'reply', 'step', 'step', 'step', 'refund', 'step', 'unavailable', 'step', 'step'],
  // Two replies with a permit come too late.
  ['try', 'try', 'step', 'mixed', 'slow', 'reply', 'step', 'step', 'mixed', 'slow', 'reply'],
]

/** Searches the states of a machine breadth first. @param depth maximum number of events after a beginning. */
export function searchMachine(modules: Modules, policy: 'error' | 'closed', depth: number): Searched {
  const { stackTraceLimit } = Error
  // Nothing reads the stack traces of callers' errors.
  Error.stackTraceLimit = 0
  try {
    return search(modules, policy, depth)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function search(modules: Modules, policy: 'error' | 'closed', depth: number): Searched {
  const terms = termsOf(modules, policy)
  const seen = new Set<string>()
  let broken: Searched['broken']
  /** Returns the path to a new state with the events that may follow, or undefined. */
  const explored = (events: readonly WorldEvent[]): Path | undefined => {
    try {
      const world = new MachineWorld(modules, terms)
      for (const event of events) world.apply(event)
      world.check()
      const { key } = world
      if (seen.has(key)) return undefined
      seen.add(key)
      return { events, next: world.enabled }
    } catch (error) {
      broken = { events, message: (error as Error).message }
      return undefined
    }
  }
  let paths = BEGINNINGS.map(explored).filter(path => path !== undefined)
  for (let length = 1; length <= depth; length++) {
    const longer: Path[] = []
    for (const { events, next } of paths) {
      for (const event of next) {
        const path = explored([...events, event])
        if (broken) return { states: seen.size, broken }
        if (path) longer.push(path)
      }
    }
    paths = longer
  }
  return { states: seen.size, broken }
}
