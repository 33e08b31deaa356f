import type { Comparison, Goal } from '../work.js'

/** Compares the speed of each subject but the first, which has the smallest size, to that of the first. */
export function comparedToFirst([first, ...others]: readonly string[], goal?: Goal): Comparison[] {
  return others.map(of => ({ measure: 'opsPerSecond', of, to: first!, goal }))
}
