import { availableParallelism } from 'node:os'
import { figures, shortfall, spread, type Figures, type Run } from './figures.js'
import { realRuns } from './real-run.js'
import type { Scenario } from './scenarios.js'
import type { Service } from './service.js'
import { SECOND, type Mode, type Setting } from './setting.js'
import { simulate } from './simulation.js'
import { starve } from './starvation.js'
import type { Strategy } from './strategies/strategy.js'

/** Result of one strategy in a scenario. */
export interface Outcome {
  readonly figures: Figures
  readonly run: Run
}

/** Number of strategies that run at the same time: small enough that they do not disturb each other. */
const TOGETHER = { tasks: 4, threads: 1, processes: 1 } as const

/** Duration of a rehearsal, in seconds. */
const REHEARSAL = 3
/** Factor from the guard that the rehearsal needed to the guard of the run: a longer run can have worse delays. */
const CAUTION = 2
/** The guard is a multiple of this, and at most a second, in milliseconds. */
const STEP = 10

/** Approximate time that the processes of a run take to start, connect and end, in seconds. */
const AROUND_A_RUN = 3

/** Estimates the duration of a scenario, in seconds. @param redis the same as for `compare`. */
export function secondsFor(
  strategies: readonly Strategy[],
  { mode, seconds }: Setting,
  { simulated }: Scenario,
  redis?: string,
): number {
  if (simulated) return 1
  return batchesOf(strategies, mode, redis).reduce((sum, batch) => {
    const rehearsal = batch.some(({ guarded }) => guarded) ? REHEARSAL + AROUND_A_RUN : 0
    return sum + rehearsal + seconds + AROUND_A_RUN
  }, 0)
}

/** Whether a strategy can run with workers of this mode. @param redis the URL of a server, if there is one. */
export function isAble({ modes, onRedis }: Strategy, mode: Mode, redis: string | undefined): boolean {
  return modes.includes(mode) && (!onRedis || redis !== undefined)
}

/**
 * Runs all strategies through a scenario. A simulated scenario skips strategies that can't be simulated.
 * @param redis the URL of a server for strategies that count in Redis; without it they are skipped.
 */
export async function compare(
  strategies: readonly Strategy[],
  setting: Setting,
  scenario: Scenario,
  service: Service,
  redis?: string,
): Promise<readonly Outcome[]> {
  const { simulated, spinners = 0 } = scenario
  const outcomes: Outcome[] = []
  if (simulated) {
    const own = { ...setting, seconds: Math.max(setting.seconds, simulated.seconds) }
    for (const strategy of strategies) {
      if (!strategy.simulated) continue
      const run = await simulate(strategy, own, simulated.trouble)
      outcomes.push({ figures: figures(strategy.name, own, run), run })
    }
    return outcomes
  }
  const byStrategy = new Map<Strategy, Outcome>()
  for (const batch of batchesOf(strategies, setting.mode, redis)) {
    await using _ = starve(spinners * availableParallelism())
    const play = (some: readonly Strategy[], part: Setting, name: string, guard: number) =>
      realRuns(some, part, { ...scenario, name }, service, redis, guard)
    const guard = await rehearsed(batch, setting, (some, part) =>
      play(some, part, `${scenario.name} before`, 0),
    )
    const runs = await play(batch, setting, scenario.name, guard)
    runs.forEach((run, index) => {
      byStrategy.set(batch[index]!, { figures: figures(batch[index]!.name, setting, run), run })
    })
  }
  return strategies.flatMap(one => byStrategy.get(one) ?? [])
}

/** Groups strategies that run at the same time. Strategies with a guard are together, because they need a rehearsal. */
function batchesOf(
  strategies: readonly Strategy[],
  mode: Mode,
  redis: string | undefined,
): readonly (readonly Strategy[])[] {
  const able = strategies.filter(one => isAble(one, mode, redis))
  const sorted = [...able.filter(one => one.guarded), ...able.filter(one => !one.guarded)]
  const batches: (readonly Strategy[])[] = []
  for (let first = 0; first < sorted.length; first += TOGETHER[mode])
    batches.push(sorted.slice(first, first + TOGETHER[mode]))
  return batches
}

/**
 * Returns the guard for a run, in milliseconds. Measures in a short run without a guard how much the strategies need.
 */
async function rehearsed(
  batch: readonly Strategy[],
  setting: Setting,
  play: (some: readonly Strategy[], part: Setting) => Promise<readonly Run[]>,
): Promise<number> {
  const guarded = batch.filter(one => one.guarded)
  if (guarded.length === 0) return 0
  const runs = await play(guarded, { ...setting, seconds: REHEARSAL })
  const needed = runs.map((run, index) =>
    Math.max(spread(run), guarded[index]!.guarded === 'any second' ? shortfall(run, setting.limit) : 0),
  )
  return Math.min(Math.ceil((CAUTION * Math.max(...needed)) / STEP) * STEP, SECOND)
}
