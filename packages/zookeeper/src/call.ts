import type { Duration } from './duration.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'
import type { WatchListener } from './watch-event.js'

/** Options of an operation. */
export interface OperationOptions {
  /** Maximum time until the reply. Default: the session's timeout. */
  readonly timeout?: Duration
  /** While no server is connected, an operation waits in order (default), or fails at once. */
  readonly suspended?: 'wait' | 'fail'
}

/** The codes of operations in the protocol. */
export const OPCODE = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  sasl: 102,
  getEphemerals: 103,
  setWatches2: 105,
  addWatch: 106,
  closeSession: -11,
} as const

/** The kind of a watch, which decides the events that it reports. */
export type WatchKind = 'data' | 'exist' | 'children' | 'persistent' | 'recursive'

/** A watch that an operation sets when it succeeds. */
export interface NewWatch {
  readonly kind: WatchKind
  readonly path: string
  readonly listener: WatchListener
}

/** One operation: how to write its request, and how to read its reply. Paths are relative to the client's chroot. */
export interface Call<T> {
  /** For messages, such as `create`. */
  readonly name: string
  readonly opcode: number
  readonly path: string
  /**
   * Whether it changes nothing, so that it can be sent again after a lost connection. The reply to any other operation
   * proves that a quorum has committed it.
   */
  readonly repeatable: boolean
  write(writer: JuteWriter): void
  read(reader: JuteReader): T
  /** Reads the reply of a server before 3.9 to a creation in a multi, which is only the path. */
  readPath?(reader: JuteReader): unknown
  /** Whether the result is `undefined` if the node does not exist, instead of an error. */
  readonly mayBeMissing?: boolean
  /** The watch that the operation sets; of kind `exist` if the node does not exist. */
  readonly watch?: NewWatch | undefined
}
