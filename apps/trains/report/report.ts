import type { LocationCounts } from '../domain/location.js'
import type { FindingsSummary } from '../input/findings.js'
import type { SerialResult } from '../serial.js'
import type { Kill } from '../supervisor/kill-plan.js'
import type { WorkerTotals } from '../supervisor/supervisor.js'
import type { Difference } from './comparison.js'

/** What a run has come to; `--json` writes it as it is. */
export interface Report extends FindingsSummary {
  /** The engine's URL, without a password. */
  readonly engine: string
  readonly input: string
  readonly processes: number
  /** How often the timetable was repeated; null for an input without days. */
  readonly days: number | null
  /** All messages of the input that were done, also those that an interrupted run had done before this one. */
  readonly messages: number
  /** How many messages the interrupted run had done that this one resumed; 0 for a run of its own. */
  readonly resumedAfter: number
  /** Whether it was ended before the input was. */
  readonly interrupted: boolean
  /** From the first message to the last acknowledgement, without the start of the workers. */
  readonly seconds: number
  readonly perSecond: number
  readonly created: number
  readonly moved: number
  readonly deleted: number
  readonly ignored: number
  readonly deadLettered: number
  /** Messages that were delivered again because their worker died. */
  readonly redelivered: number
  readonly kills: readonly Kill[]
  /** How long messages waited until their locks were held: milliseconds, null when there were none. */
  readonly lockWaitMs: { readonly p50: number | null; readonly p99: number | null }
  /** What the serial result says about all locations together. */
  readonly serial: SerialResult['totals']
  /** Whether every location shows what the serial result says. */
  readonly matchesSerial: boolean
  /** The first locations that don't. */
  readonly differences: readonly Difference[]
  readonly locations: Readonly<Record<string, LocationCounts>>
  readonly perWorker: readonly WorkerTotals[]
  /** The most memory that the supervisor used, in bytes. It does not grow with the number of messages. */
  readonly peakMemory: number
}

/** How the command can end: the exit status, and its text for help. */
export const EXIT = {
  fine: { status: 0, text: 'done, and every location agrees with the serial result' },
  mismatch: { status: 1, text: 'a location differs from the serial result' },
  badInput: {
    status: 2,
    text: 'the command line or the input is invalid, or another run uses the engine; nothing was done',
  },
  deadLetters: { status: 3, text: 'done and correct, but messages were dead-lettered' },
  aborted: {
    status: 4,
    text: 'aborted: the engine is unusable, or workers died repeatedly; --resume continues',
  },
  rejected: { status: 5, text: 'done and correct, but input lines were rejected, and --strict was given' },
  interrupted: { status: 130, text: 'ended by Ctrl-C; --resume continues' },
} as const

/**
 * Returns the exit status for a report: of several, the most serious.
 * @param strict whether `--strict` was given.
 */
export function exitStatus(report: Report, strict: boolean | undefined): number {
  if (!report.matchesSerial) return EXIT.mismatch.status
  if (report.interrupted) return EXIT.interrupted.status
  if (report.deadLettered > 0) return EXIT.deadLetters.status
  return strict && report.rejected > 0 ? EXIT.rejected.status : EXIT.fine.status
}
