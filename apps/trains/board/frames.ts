import type { BusyLocation } from '../report/busiest.js'
import type { Diagram } from './network.js'

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
  readonly holders: readonly string[]
  /** In the order of the queue. */
  readonly waiters: readonly string[]
}

/** A message to a page. A `diagram` comes first, and again when the network grows. */
export type Frame = DiagramFrame | NowFrame | EndFrame

export interface DiagramFrame {
  readonly kind: 'diagram'
  readonly title: string
  readonly diagram: Diagram
}

/** The state of the run. */
export interface NowFrame {
  readonly kind: 'now'
  readonly messages: number
  /** Null if unknown. */
  readonly total: number | null
  readonly seconds: number
  readonly perSecond: number
  readonly trains: readonly TrainMoves[]
  /** Number of trains that exist, drawn or not. */
  readonly running: number
  readonly busiest: readonly BusyPlace[]
  readonly workers: readonly WorkerState[]
  /** Kills, deaths and replacements of workers, newest first. */
  readonly events: readonly string[]
  readonly locked: readonly LockedStation[]
}

/** The last frame, after a `now` with the figures of the report. */
export interface EndFrame {
  readonly kind: 'end'
  /** `incomplete`: correct, but the run was interrupted, or messages or input lines were lost. */
  readonly outcome: 'right' | 'incomplete' | 'wrong'
  /** The summary of the run, as lines of text. */
  readonly lines: readonly string[]
}
