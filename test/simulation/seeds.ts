import { followsTasks } from './climate.js'
import { simulate } from './simulate.js'
import { sources } from './sources.js'

/** How many failures are enough to know. */
const ENOUGH = 5

/**
 * Runs the schedules of the seeds from `first` to before `end`, and reports which broke a promise and how to see it.
 */
export async function runSeeds(first: number, end: number): Promise<readonly string[]> {
  const broken: string[] = []
  const { stackTraceLimit } = Error
  // Most errors here are expected ones, and finding out where they come from takes long.
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
 * Schedules whose boxes follow tasks come last: once that has been done in a process, the runtime keeps watching all
 * promises, which makes everything slower.
 */
function ordered(first: number, end: number): number[] {
  const seeds = Array.from({ length: end - first }, (_, index) => first + index)
  return [...seeds.filter(seed => !followsTasks(seed)), ...seeds.filter(followsTasks)]
}
