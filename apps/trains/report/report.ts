import type { LocationCounts } from '../domain/location.js'
import type { FindingsSummary } from '../input/findings.js'
import type { SerialResult } from '../serial.js'
import type { Kill } from '../supervisor/kill-plan.js'
import type { WorkerTotals } from '../supervisor/supervisor.js'
import type { Difference } from './comparison.js'
import { EXIT } from './exit.js'

/** The report of a run; `--json` writes it as it is. */
export interface Report extends FindingsSummary {
  /** The engine's URL, without secrets. */
  readonly engine: string
  readonly input: string
  readonly processes: number
  /** Number of days of the timetable, including days that an interrupted run did not reach; null for other input. */
  readonly days: number | null
  /** Number of messages that are done, including those of the run that this one resumed. */
  readonly messages: number
  /** Number of messages that the resumed run had done; 0 for a new run. */
  readonly resumedAfter: number
  /** Whether the run was stopped before the end of its input. */
  readonly interrupted: boolean
  /** Time from the first message to the last acknowledgement. Excludes the start of the workers. */
  readonly seconds: number
  readonly perSecond: number
  readonly created: number
  readonly moved: number
  readonly deleted: number
  /** Number of messages whose change no location counts. */
  readonly ignored: number
  readonly deadLettered: number
  /** Number of messages that were delivered again because their worker died. */
  readonly redelivered: number
  /** Number of those that were already committed, so they changed nothing. */
  readonly alreadyApplied: number
  readonly kills: readonly Kill[]
  /** Percentiles of the messages' waits for their locks, in milliseconds; null if there were no messages. */
  readonly lockWaitMs: { readonly p50: number | null; readonly p99: number | null }
  readonly serial: SerialResult['totals']
  /** Whether every location agrees with the serial result. */
  readonly matchesSerial: boolean
  /** The first locations that differ. */
  readonly differences: readonly Difference[]
  readonly locations: Readonly<Record<string, LocationCounts>>
  readonly perWorker: readonly WorkerTotals[]
  /** The peak memory of the supervisor in bytes. It does not grow with the number of messages. */
  readonly peakMemory: number
}

/** The most serious status if several apply. */
export function exitStatus(report: Report, strict: boolean | undefined): number {
  if (!report.matchesSerial) return EXIT.mismatch.status
  if (report.interrupted) return EXIT.interrupted.status
  if (report.deadLettered > 0) return EXIT.deadLetters.status
  return strict && report.rejected > 0 ? EXIT.rejected.status : EXIT.fine.status
}
