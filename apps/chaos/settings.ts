import type { PeerName } from './protocol.js'

/** What a run is told. */
export interface Settings {
  readonly engine: string
  /** Whose locks are used instead of Signalbox's. */
  readonly peer?: PeerName
  readonly seed: number
  /** It ends after so many faults or so many seconds, whichever comes first. */
  readonly faults: number
  readonly seconds: number
  readonly processes: number
  /** How long locks outlive silence: milliseconds. */
  readonly lease: number
  /** The command line that starts the server of the engine, if the run is to start, kill and stop it. */
  readonly server?: string
  /** The port that a Hazelcast member tells its clients. */
  readonly proxyPort?: number
}
