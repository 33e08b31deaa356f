import { cpus, availableParallelism } from 'node:os'
import type { Verdict } from './check/check.js'
import { seenThrough } from './check/recovery.js'
import { sessionOf } from './limits.js'
import type { Outcome } from './run.js'
import type { Settings } from './settings.js'

/** What a run gave, without its history. */
export interface Report extends Verdict {
  readonly date: string
  readonly engine: string
  /** Whose locks were used. */
  readonly locks: string
  readonly machine: { readonly cpu: string; readonly cores: number; readonly node: string }
  readonly seed: number
  readonly processes: number
  /** Milliseconds. */
  readonly lease: number
  /** The session time-out that was asked of ZooKeeper: milliseconds; absent elsewhere. */
  readonly session?: number
  readonly seconds: number
  readonly faults: number
}

export function reportOf(
  { engine, seed, processes, lease, peer }: Settings,
  outcome: Outcome,
  verdict: Verdict,
): Report {
  const session = sessionOf(engine)
  return {
    date: new Date().toISOString(),
    engine: outcome.guarantees.engine,
    locks: peer ?? 'signalbox',
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: availableParallelism(),
      node: process.versions.node,
    },
    seed,
    processes,
    lease,
    ...(session !== undefined && { session }),
    seconds: Math.round(outcome.seconds),
    faults: seenThrough(outcome.history.faults).length,
    ...verdict,
  }
}
