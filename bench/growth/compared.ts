import type { Comparison, Goal } from '../work.js'

/** Compares the speed of each other subject with that of the first, which has the smallest size. */
export function comparedToFirst([first, ...others]: readonly string[], goal?: Goal): Comparison[] {
  return others.map(of => ({ measure: 'opsPerSecond', of, to: first!, goal }))
}
