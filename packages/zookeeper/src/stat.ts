import type { JuteReader } from './jute-reader.js'

/** What ZooKeeper knows of a node. Times are milliseconds since 1970 by the server's clock. */
export interface Stat {
  /** The transaction that created it. */
  readonly czxid: bigint
  /** The transaction that changed its data last. */
  readonly mzxid: bigint
  /** The transaction that changed its children last. */
  readonly pzxid: bigint
  readonly ctime: number
  readonly mtime: number
  /** How often its data was changed: what `setData` and `delete` can be made to depend on. */
  readonly version: number
  /** How often its children changed. */
  readonly cversion: number
  /** How often its ACL changed. */
  readonly aversion: number
  /** The session it ends with; 0 for others. Containers and TTL nodes, too, show 0 or what is no session. */
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
