import type { Duration } from './duration.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'
import type { WatchListener } from './watch-event.js'

/** How an operation is carried out. */
export interface OperationOptions {
  /** How long the caller waits for the answer. Default: the session's timeout. */
  readonly timeout?: Duration
  /** What happens to the operation while no server is connected: it waits in order (default), or fails at once. */
  readonly suspended?: 'wait' | 'fail'
}

/** The numbers of operations in the protocol. */
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

/** What a watch on a node is told of. */
export type WatchKind = 'data' | 'exist' | 'children' | 'persistent' | 'recursive'

/** A watch that an operation leaves when it succeeds. */
export interface NewWatch {
  readonly kind: WatchKind
  readonly path: string
  readonly listener: WatchListener
}

/** One operation: how it is written, and how its answer is read. Paths are the client's, without its chroot. */
export interface Call<T> {
  /** For messages, like `create`. */
  readonly name: string
  readonly opcode: number
  readonly path: string
  /**
   * Whether it changes nothing, so that it can be sent again after a lost connection. A quorum of the servers has
   * committed any other operation when it is answered.
   */
  readonly repeatable: boolean
  write(writer: JuteWriter): void
  read(reader: JuteReader): T
  /** Reads the answer of a server before 3.9 to a creation in a multi, which is only the path. */
  readPath?(reader: JuteReader): unknown
  /** Whether the answer is `undefined` where there is no such node, instead of an error. */
  readonly mayBeMissing?: boolean
  /** The watch that the answer leaves; of kind `exist` where there is no such node. */
  readonly watch?: NewWatch | undefined
}
