import type { BusyLocation } from '../report/busiest.js'
import type { LockUser } from '../lock-in-use.js'
import type { Diagram } from './diagram.js'

/** The stations of a train since the last frame, in order, beginning with the one where it was then. */
export interface TrainMoves {
  /** The train's number, the same in all frames. */
  readonly train: number
  readonly stations: readonly number[]
  readonly isGone: boolean
}

/** A location as the board lists it. */
export interface BusyPlace extends BusyLocation {
  /** Empty if unknown. */
  readonly name: string
}

/** The state of a worker. */
export interface WorkerState {
  /** Counted from 1. */
  readonly worker: number
  /** Whether it accepts messages. */
  readonly isReady: boolean
  readonly messages: number
  /** Messages a second. */
  readonly perSecond: number
  readonly kills: number
  readonly replaced: number
}

/** A station whose locks are in use. */
export interface LockedStation {
  readonly station: number
  readonly holders: readonly LockUser[]
  /** In the order of the queue. */
  readonly waiters: readonly LockUser[]
}

/** A wait for the lock of a station. */
export interface Wait {
  readonly waiter: LockUser
  readonly holder: LockUser
  /** The name of the station. */
  readonly station: string
}

/** Counts of a run. */
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

/** What the run is. */
export interface AboutFrame {
  readonly kind: 'about'
  /** The name of the input. */
  readonly title: string
  readonly processes: number
  /** How many times as fast as the timetable; null: as fast as possible. */
  readonly speed: number | null
  /** How long each message keeps its locks, in milliseconds; 0: no longer than it needs. */
  readonly dwell: number
  /** Whether messages take locks. */
  readonly isLocked: boolean
  readonly diagram: Diagram
}

/** The state of the run. */
export interface NowFrame extends Facts {
  readonly kind: 'now'
  /** Null if unknown. */
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
  /** Waits that were seen, newest first. */
  readonly waits: readonly Wait[]
}

/** The last frame, after a `now` with the figures of the report. */
export interface EndFrame {
  readonly kind: 'end'
  /** `incomplete`: correct, but the run was interrupted, or messages or input lines were lost. */
  readonly outcome: 'right' | 'incomplete' | 'wrong'
  /** The result in a sentence, and what belongs to it. */
  readonly headline: string
  readonly lines: readonly string[]
  /** The trains that exist, where they are. */
  readonly standing: readonly TrainMoves[]
}
