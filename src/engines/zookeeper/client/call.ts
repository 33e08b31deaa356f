import type { Duration } from '../../../duration.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'
import type { WatchListener } from './watch-event.js'

/** How an operation is carried out. */
export interface OperationOptions {
  /** Until when its answer is of use. Default: the session's timeout. */
  readonly timeout?: Duration
  /** What becomes of it while no server is connected: it waits in order (default), or fails at once. */
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

const WRITES: ReadonlySet<number> = new Set([
  OPCODE.create,
  OPCODE.delete,
  OPCODE.setData,
  OPCODE.setAcl,
  OPCODE.multi,
  OPCODE.create2,
  OPCODE.createContainer,
  OPCODE.createTtl,
])

/** Whether a quorum of the servers has put it through when it is answered. */
export function isWrite(opcode: number): boolean {
  return WRITES.has(opcode)
}

/** Whether it comes by way of the leader. */
export function isLed(opcode: number): boolean {
  return opcode === OPCODE.sync || isWrite(opcode)
}

/** What a watch on a node is told of. */
export type WatchKind = 'data' | 'exist' | 'children' | 'persistent' | 'recursive'

/** A watch that an operation leaves when it succeeds. Its path is the server's, with the chroot. */
export interface NewWatch {
  readonly kind: WatchKind
  readonly path: string
  readonly listener: WatchListener
}

/** One operation: how it is asked for, and what its answer is. */
export interface Call<T> {
  /** For messages, like `create`. */
  readonly name: string
  readonly opcode: number
  /** As the caller named it. */
  readonly path: string
  /** Whether carrying it out twice is as good as once, so that it can be sent again after a lost connection. */
  readonly repeatable: boolean
  write(writer: JuteWriter): void
  read(reader: JuteReader): T
  /** The answer where a server tells only the path of what it created; undefined for what creates nothing. */
  readPath?(reader: JuteReader): unknown
  /** What stands for an answer of this number instead of an error; undefined: it is an error. */
  refused?(number: number): T | undefined
  /** The watch that is there after this answer; undefined for none. */
  watch?: ((missing: boolean) => NewWatch) | undefined
}
