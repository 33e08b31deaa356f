import { Random } from '../../packages/conformance/src/random.js'
import { inLanes } from './lanes.js'
import { crowdedOperation, randomOperation, togetherOperation } from './random-operation.js'
import { LOCKS, SESSIONS, World, type TablePort } from './table-world.js'

/** Number of operations of a history. */
export const STEPS = 80

/** Times that pass between two operations, in milliseconds. */
const PASSES = [0, 0, 0, 0, 0, 0, 0, 5, 5, 30, 30, 400, 400, 1000, 1200, 6000]

/** The operations of a history: any, those while many wait for few keys, or those while many hold one key. */
const OPERATIONS = { any: randomOperation, crowded: crowdedOperation, together: togetherOperation }
export type HistoryKind = keyof typeof OPERATIONS

/**
 * Compares the lock table and a port by random histories.
 * @param portFor makes a port for the seed of a history
 * @param first the seed of the first history; the others follow it
 * @throws Error with seed and history if they differ
 */
export async function compareHistories(
  portFor: (seed: number) => TablePort,
  first: number,
  count: number,
  kind: HistoryKind = 'any',
): Promise<void> {
  await inLanes(first, count, async seed => {
    const port = portFor(seed)
    try {
      await compare(port, seed, kind)
    } finally {
      port.end?.()
    }
  })
}

async function compare(port: TablePort, seed: number, kind: HistoryKind): Promise<void> {
  const random = new Random(seed)
  const world = new World(port)
  const history: string[] = []
  for (let step = 0; step < STEPS; step++) {
    const passes = PASSES[kind !== 'any' && random.below(4) > 0 ? 0 : random.below(PASSES.length)]!
    if (passes > 0) world.repeatable = undefined
    world.now += passes
    const session = SESSIONS[random.below(SESSIONS.length)]!
    const next = OPERATIONS[kind](random, world, session, step, seed % 2 === 1)
    history.push(`${world.now} ${session} ${JSON.stringify(next)}`)
    try {
      // A request that met one key of a grant learns of its end there, and not at the others, as the original does.
      if (passes > 0 && seed % 2 === 1) await world.decide(session, { type: 'sweepExpired', keys: LOCKS })
      await world.decide(session, next)
    } catch (error) {
      throw new Error(`seed ${seed}, step ${step}:\n${history.join('\n')}\n${(error as Error).message}`, {
        cause: error,
      })
    }
  }
}
