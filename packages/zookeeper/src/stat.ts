import type { JuteReader } from './jute-reader.js'

/** The metadata of a node. Times are milliseconds since 1970 by the server's clock. */
export interface Stat {
  /** The transaction that created it. */
  readonly czxid: bigint
  /** The transaction that last changed its data. */
  readonly mzxid: bigint
  /** The transaction that last changed its children. */
  readonly pzxid: bigint
  readonly ctime: number
  readonly mtime: number
  /** Number of changes of its data. `setData` and `delete` can require it. */
  readonly version: number
  /** Number of changes of its children. */
  readonly cversion: number
  /** Number of changes of its ACL. */
  readonly aversion: number
  /**
   * The session that it ends with; 0 for other nodes. For containers and TTL nodes, 0 or a value that is not a session.
   */
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
}

/** Reads a stat. The fields are in the order in which servers send them. */
export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: Number(reader.long()),
    mtime: Number(reader.long()),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.long(),
    dataLength: reader.int(),
    numChildren: reader.int(),
    pzxid: reader.long(),
  }
}
