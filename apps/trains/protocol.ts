import type { Message } from './messages/message.js'
import type { Settings } from './options.js'
import type { WorkerFailure } from './worker/failure.js'

export interface WorkerSettings extends Pick<
  Settings,
  'engine' | 'engineWait' | 'limits' | 'use' | 'dwell' | 'log' | 'logLevel'
> {
  /** The worker's number, counted from 1. */
  readonly worker: number
  /** The name of the run: see `RunStore`. */
  readonly run: string
}

/**
 * A message from the supervisor to a worker. Messages of the input are sent in batches, because sending each one alone
 * would cost more than applying it.
 */
export type ToWorker =
  | { readonly kind: 'start'; readonly settings: WorkerSettings }
  | { readonly kind: 'work'; readonly sequences: readonly number[]; readonly messages: readonly Message[] }
  /** Acknowledge nothing while `holding`: a kill is planned between a commit and its acknowledgement. */
  | { readonly kind: 'hold'; readonly holding: boolean }
  /** Finish all messages that were sent, and end. */
  | { readonly kind: 'drain' }

/** A dead-lettered message, by its sequence number, and the reason. */
export interface FailedMessage {
  readonly sequence: number
  readonly reason: string
}

/** A message from a worker to the supervisor. */
export type FromWorker =
  /** The worker has opened its box. The supervisor revokes `session` if the worker dies. */
  | { readonly kind: 'ready'; readonly session: string }
  | Acknowledgement
  /** Sent once while holding, when messages are committed and not acknowledged. */
  | { readonly kind: 'holding'; readonly committed: number }
  /** All messages are done and acknowledged, and the worker ends. `peakMemory`: see `measurePeakMemory`. */
  | { readonly kind: 'drained'; readonly peakMemory: number }
  | WorkerFailure

/** Messages that are done, each with its event and the bucket of its lock wait; see `bucketOf`. */
export interface Acknowledgement {
  readonly kind: 'settled'
  readonly sequences: number[]
  readonly events: string[]
  readonly waits: number[]
  readonly deadLettered: FailedMessage[]
}
