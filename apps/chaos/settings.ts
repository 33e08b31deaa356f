import type { PeerName } from './protocol.js'

/** The settings of a run. */
export interface Settings {
  readonly engine: string
  /** The library whose locks are used instead of Signalbox's. */
  readonly peer?: PeerName
  readonly seed: number
  /** The run ends after this number of faults or seconds, whichever comes first. */
  readonly faults: number
  readonly seconds: number
  readonly processes: number
  /** Lease of a lock, in milliseconds. */
  readonly lease: number
  /** The command line that starts the server of the engine. If present, the run also kills and stops the server. */
  readonly server?: string
  /** The port that a Hazelcast member announces to its clients. */
  readonly proxyPort?: number
}
