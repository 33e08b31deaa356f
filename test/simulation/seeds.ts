import { followsTasks } from './climate.js'
import { simulate } from './simulate.js'
import { sources } from './sources.js'

/** Maximum number of failures to report. */
const ENOUGH = 5

/**
 * Runs the schedules of the seeds from `first` to below `end`. Returns the broken promises, with the commands to
 * reproduce them.
 */
export async function runSeeds(first: number, end: number): Promise<readonly string[]> {
  const broken: string[] = []
  const { stackTraceLimit } = Error
  // Most errors here are expected, and capturing their stack traces takes long.
  Error.stackTraceLimit = 0
  for (const seed of ordered(first, end)) {
    const { violation } = await simulate(seed, sources)
    if (!violation) continue
    broken.push(
      `seed ${seed} broke ${violation.promise}: ${violation.message}\n` +
        `to see it: SEED=${seed} npx vitest run test/simulation/replay.test.ts`,
    )
    if (broken.length === ENOUGH) break
  }
  Error.stackTraceLimit = stackTraceLimit
  return broken
}

/**
 * Returns the seeds in the order of their runs. Schedules whose boxes follow tasks come last: after the first of them,
 * the runtime tracks all promises of the process, which makes everything slower.
 */
function ordered(first: number, end: number): number[] {
  const seeds = Array.from({ length: end - first }, (_, index) => first + index)
  return [...seeds.filter(seed => !followsTasks(seed)), ...seeds.filter(followsTasks)]
}
