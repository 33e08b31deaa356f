import type { LogLevel } from './log/log.js'
import type { Message } from './messages/message.js'
import type { StoreUse } from './tracker.js'
import type { WorkerFailure } from './worker/failure.js'
import type { Limits } from './worker/message-processor.js'

/** What a worker needs to know before its first message. */
export interface WorkerSettings {
  /** The worker's number, counted from 1. */
  readonly worker: number
  readonly engine: string
  /** The name of this run: see `RunStore`. */
  readonly run: string
  readonly limits: Limits
  /** How long an engine that is unreachable is waited for, in milliseconds. */
  readonly engineWait: number
  readonly use: StoreUse
  /** The file to append the log to; undefined for standard error. */
  readonly logFile: string | undefined
  readonly logLevel: LogLevel
}

/**
 * From the supervisor to a worker. Messages travel by the hundred: sending each alone would cost more than its work.
 */
export type ToWorker =
  | { readonly kind: 'start'; readonly settings: WorkerSettings }
  | { readonly kind: 'work'; readonly sequences: readonly number[]; readonly messages: readonly Message[] }
  /** Acknowledge nothing while this holds: the worker is to die between a commit and its acknowledgement. */
  | { readonly kind: 'hold'; readonly holding: boolean }
  /** Finish what is under way, and end. */
  | { readonly kind: 'drain' }

/** A message that was given up: the number it came under, and why. */
export interface GivenUp {
  readonly sequence: number
  readonly reason: string
}

/** From a worker to the supervisor. */
export type FromWorker =
  /** The worker has opened its box. `session` is revoked when it dies. */
  | { readonly kind: 'ready'; readonly session: string }
  | Acknowledgement
  /** Sent once while it holds, when a number of messages are committed and not acknowledged. */
  | { readonly kind: 'holding'; readonly committed: number }
  /** All is done and acknowledged, and the worker ends. `peakMemory`: see PeakMemory. */
  | { readonly kind: 'drained'; readonly peakMemory: number }
  | WorkerFailure

/** Messages that are done, each with the event it came to and the bucket of its lock wait: see `Histogram`. */
export interface Acknowledgement {
  readonly kind: 'settled'
  readonly sequences: number[]
  readonly events: string[]
  readonly waits: number[]
  readonly givenUp: GivenUp[]
}
