import { Interned, type World } from './world.js'

/** Tasks to run in every order. */
export interface Explored {
  /** Maximum number of faults in one run. */
  readonly faults: number
  /** The kinds of faults: crashes of processes only, or lost connections, too. */
  readonly kinds: 'crashes' | 'all'
  /** Starts the processes, in the same way each time. */
  start(names: Interned): World
  /**
   * Checks a world in which no process runs any more. Late calls may still arrive. Returns a message about a fault.
   */
  judge(world: World): Promise<string | undefined>
}

export interface Exploration {
  /** Number of different states. */
  readonly states: number
  /** Number of final states. */
  readonly ends: number
  /** A message about a violation, and the events that lead to it. */
  readonly violation: string | undefined
}

/**
 * Explores every order of events, each state once. It reaches a state by repeating all events from the start. Ends at
 * the first violation.
 */
export async function explore(scope: Explored): Promise<Exploration> {
  const seen = new Set<string>()
  const names = new Interned()
  const ways: (readonly number[])[] = [[]]
  let ends = 0
  for (let way = ways.pop(); way; way = ways.pop()) {
    const world = scope.start(names)
    const taken: number[] = []
    const told: string[] = []
    let faults = scope.faults
    for (;;) {
      await world.settle()
      const isNew = taken.length >= way.length
      if (isNew) {
        const key = world.key(faults)
        if (seen.has(key)) break
        seen.add(key)
        if (world.isOver) {
          ends++
          const wrong = await scope.judge(world)
          if (wrong !== undefined)
            return { states: seen.size, ends, violation: `${wrong}\n${told.join('\n')}` }
        }
      }
      const choices = world.choices(scope.kinds).filter(({ isFault }) => !isFault || faults > 0)
      if (choices.length === 0) break
      if (isNew) for (let other = choices.length - 1; other > 0; other--) ways.push([...taken, other])
      const next = isNew ? 0 : way[taken.length]!
      const { name, isFault, happen } = choices[next]!
      if (isFault) faults--
      happen()
      taken.push(next)
      told.push(name)
    }
  }
  return { states: seen.size, ends, violation: undefined }
}
