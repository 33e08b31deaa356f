import { availableParallelism } from 'node:os'
import { figures, shortfall, spread, type Figures, type Run } from './figures.js'
import { realRuns } from './real-run.js'
import type { Scenario } from './scenarios.js'
import type { Service } from './service.js'
import { SECOND, type Mode, type Setting } from './setting.js'
import { simulate } from './simulation.js'
import { starve } from './starvation.js'
import type { Strategy } from './strategies/strategy.js'

/** What a scenario showed of one strategy. */
export interface Outcome {
  readonly figures: Figures
  readonly run: Run
}

/** Number of strategies that run at the same time: few enough not to disturb each other. */
const TOGETHER = { tasks: 4, threads: 1, processes: 1 } as const

/** How long a rehearsal is, in seconds. */
const REHEARSAL = 3
/** A longer run meets what a short one did not: the guard is this multiple of what the rehearsal needed. */
const CAUTION = 2
/** The guard is a multiple of this, and no longer than the second that it is added to, in milliseconds. */
const STEP = 10

/** About how long the processes of a run take to start, connect and end, in seconds. */
const AROUND_A_RUN = 3

/** About how long a scenario takes, in seconds. @param redis as of `compare`. */
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

/** Whether a strategy can be run for workers that live there. @param redis the URL of a server, if there is one. */
export function isAble({ modes, onRedis }: Strategy, mode: Mode, redis: string | undefined): boolean {
  return modes.includes(mode) && (!onRedis || redis !== undefined)
}

/**
 * Runs all strategies through a scenario; those that can't be simulated are left out where it is.
 * @param redis the URL of a server for those that count there; without it they are left out.
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

/** The strategies that run at the same time. Those with a guard are together, because they need a rehearsal. */
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

/** The guard for a run: more than those that have one needed in a short run without it, in milliseconds. */
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
