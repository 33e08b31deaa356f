import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { Verdict } from './check/check.js'
import { seenThrough } from './check/recovery.js'
import type { Fault } from './history.js'
import { sessionOf } from './limits.js'
import type { Outcome } from './run.js'
import type { Settings } from './settings.js'

/** The results of a run, without its history. */
export interface Report extends Verdict {
  readonly date: string
  /** Version of this package. */
  readonly version: string
  /** Commit of the sources, if it runs from a clone. */
  readonly commit?: string
  readonly engine: string
  /** The library whose locks were used. */
  readonly locks: string
  readonly machine: { readonly cpu: string; readonly cores: number; readonly node: string }
  readonly seed: number
  readonly processes: number
  /** Lease of a lock, in milliseconds. */
  readonly lease: number
  /** Requested session timeout of ZooKeeper, in milliseconds; absent for other engines. */
  readonly session?: number
  readonly seconds: number
  readonly faults: number
  /** All faults, including one that an interrupt cut short. */
  readonly faultList: readonly Fault[]
}

const require = createRequire(import.meta.url)
const MANIFEST = 'signalbox/package.json'

export function reportOf(
  { engine, seed, processes, lease, peer }: Settings,
  outcome: Outcome,
  verdict: Verdict,
): Report {
  const session = sessionOf(engine)
  const commit = commitOf(dirname(require.resolve(MANIFEST)))
  return {
    date: new Date().toISOString(),
    version: (require(MANIFEST) as { version: string }).version,
    ...(commit !== undefined && { commit }),
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
    faultList: outcome.history.faults,
    ...verdict,
  }
}

/** Returns the commit of a clone, with a plus if files were changed; undefined if there is no clone, or no git. */
function commitOf(folder: string): string | undefined {
  if (!existsSync(join(folder, '.git'))) return undefined
  const argv = ['describe', '--always', '--abbrev=12', '--exclude=*', '--dirty=+']
  try {
    return execFileSync('git', argv, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}
