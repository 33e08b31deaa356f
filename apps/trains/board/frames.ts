import type { LocationCounts } from '../domain/location.js'
import type { Diagram } from './network.js'

/** Where a train has been since the last frame, as stations in order; the first is where it was then. */
export interface TrainMoves {
  /** The train's number, the same in all frames. */
  readonly train: number
  readonly stations: readonly number[]
  readonly isGone: boolean
}

/** A location with what has happened there. */
export interface BusyPlace extends LocationCounts {
  readonly id: string
  /** Empty where the input does not say. */
  readonly name: string
}

/** What a worker does. */
export interface WorkerState {
  /** Counted from 1. */
  readonly worker: number
  /** Whether it takes messages. */
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
  /** In the order in which they are served. */
  readonly waiters: readonly string[]
}

/** A message to a page. A `diagram` comes first, and again when the network has grown. */
export type Frame = DiagramFrame | NowFrame | EndFrame

export interface DiagramFrame {
  readonly kind: 'diagram'
  readonly title: string
  readonly diagram: Diagram
}

/** How the run is getting on. */
export interface NowFrame {
  readonly kind: 'now'
  readonly messages: number
  /** Null where it is not known. */
  readonly total: number | null
  readonly seconds: number
  readonly perSecond: number
  readonly trains: readonly TrainMoves[]
  /** How many trains are under way, drawn or not. */
  readonly underWay: number
  readonly busiest: readonly BusyPlace[]
  readonly workers: readonly WorkerState[]
  /** The outcome of workers, newest first. */
  readonly events: readonly string[]
  readonly locked: readonly LockedStation[]
}

/** Comes last, after a `now` with the figures of the report. */
export interface EndFrame {
  readonly kind: 'end'
  /** `incomplete`: what was done is right, but the run was interrupted, or something was lost. */
  readonly outcome: 'right' | 'incomplete' | 'wrong'
  /** What has come of the run, as lines of text. */
  readonly lines: readonly string[]
}
