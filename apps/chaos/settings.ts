import type { PeerName } from './protocol.js'

/** The settings of a run. */
export interface Settings {
  readonly engine: string
  /** Whose locks are used instead of Signalbox's. */
  readonly peer?: PeerName
  readonly seed: number
  /** It ends after this number of faults or seconds, whichever comes first. */
  readonly faults: number
  readonly seconds: number
  readonly processes: number
  /** How long locks outlive silence, in milliseconds. */
  readonly lease: number
  /** The command line that starts the server of the engine, if the run is to start, kill and stop it. */
  readonly server?: string
  /** The port that a Hazelcast member announces to its clients. */
  readonly proxyPort?: number
}
