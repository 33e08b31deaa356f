import type { Fault, History } from '../history.js'
import type { Finding } from './finding.js'
import { grouped } from './grouped.js'

/** What faults of one kind cost those who had to wait: milliseconds. */
export interface Recovery {
  readonly kind: string
  readonly faults: number
  readonly median: number
  readonly worst: number
  readonly limit: number
}

export function recoveries({ faults, limits }: History): Recovery[] {
  return [...grouped(seenThrough(faults), ({ kind }) => kind)].map(([kind, all]) => {
    const times = all.map(({ recovery }) => recovery ?? Infinity).sort((one, other) => one - other)
    return {
      kind,
      faults: all.length,
      median: (times[(times.length - 1) >> 1]! + times[times.length >> 1]!) / 2,
      worst: times.at(-1)!,
      limit: limits[kind]!,
    }
  })
}

/** The faults that were not broken off by an interrupt. */
export function seenThrough(faults: readonly Fault[]): Fault[] {
  return faults.filter(({ interrupted }) => !interrupted)
}

/** Whether everything went on in time after each fault (P9). */
export function checkRecovery({ faults, limits }: History): Finding[] {
  return seenThrough(faults)
    .filter(({ kind, recovery = Infinity }) => recovery > limits[kind]!)
    .map(({ kind, at, recovery }) => ({
      promise: 'P9',
      message: `${recovery === undefined ? 'nothing went on' : `it took ${Math.round(recovery)} ms`} after the fault "${kind}" at ${Math.round(at)} ms, where ${limits[kind]!} ms are allowed`,
    }))
}
