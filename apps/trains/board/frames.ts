import type { BusyLocation } from '../report/busiest.js'
import type { LockUser } from '../lock-in-use.js'
import type { Diagram } from './diagram.js'

/** The stations of a train since the last frame, in order, beginning with its station in that frame. */
export interface TrainMoves {
  /** The train's number, the same in all frames. */
  readonly train: number
  readonly stations: readonly number[]
  readonly isGone: boolean
}

export interface BusyPlace extends BusyLocation {
  /** Empty if unknown. */
  readonly name: string
}

export interface WorkerState {
  /** Counted from 1. */
  readonly worker: number
  /** Whether it accepts messages. */
  readonly isReady: boolean
  readonly messages: number
  readonly perSecond: number
  readonly kills: number
  readonly replaced: number
}

export interface LockedStation {
  readonly station: number
  readonly holders: readonly LockUser[]
  /** In the order of the queue. */
  readonly waiters: readonly LockUser[]
}

export interface Wait {
  readonly waiter: LockUser
  readonly holder: LockUser
  readonly station: string
}

export interface Facts {
  /** Number of messages that are done. */
  readonly messages: number
  readonly kills: number
  /** Number of messages that were delivered again because their worker died. */
  readonly redelivered: number
  /** Number of those that were already committed, so they changed nothing. */
  readonly alreadyApplied: number
}

/** A message to a page. `about` comes first, and again when the network grows. */
export type Frame = AboutFrame | NowFrame | EndFrame

export interface AboutFrame {
  readonly kind: 'about'
  readonly title: string
  readonly processes: number
  /** Speed relative to the timetable; null: as fast as possible. */
  readonly speed: number | null
  /** Minimum time that each message keeps its locks, in milliseconds; 0: only as long as it needs them. */
  readonly dwell: number
  /** Whether messages take locks. */
  readonly isLocked: boolean
  readonly diagram: Diagram
}

export interface NowFrame extends Facts {
  readonly kind: 'now'
  /** Maximum number of messages; null if unknown. */
  readonly total: number | null
  /** The time of the timetable, in seconds since midnight; null if the run does not follow it. */
  readonly time: number | null
  readonly seconds: number
  readonly perSecond: number
  readonly trains: readonly TrainMoves[]
  /** The numbers of the drawn trains that wait for a lock. */
  readonly waiting: readonly number[]
  /** Number of trains that wait for a lock, drawn or not. */
  readonly allWaiting: number
  /** Number of trains that exist, drawn or not. */
  readonly running: number
  readonly busiest: readonly BusyPlace[]
  readonly workers: readonly WorkerState[]
  /** Kills, deaths and replacements of workers, newest first. */
  readonly events: readonly string[]
  readonly locked: readonly LockedStation[]
  /** Current waits, then ended ones, each newest first. */
  readonly waits: readonly Wait[]
}

/** The last frame, after a `now` with the figures of the report. */
export interface EndFrame {
  readonly kind: 'end'
  /** `incomplete`: correct, but the run was interrupted, messages were dead-lettered, or input lines were rejected. */
  readonly outcome: 'right' | 'incomplete' | 'wrong'
  /** The result in one sentence. */
  readonly headline: string
  readonly lines: readonly string[]
  /** The trains that exist, at their stations. */
  readonly standing: readonly TrainMoves[]
}
