/** The promises of Signalbox by number; `docs/guarantees.md` has their full text. */
export type PromiseId =
  | 'P1'
  | 'P2'
  | 'P3'
  | 'P4'
  | 'P5'
  | 'P6'
  | 'P7'
  | 'P8'
  | 'P9'
  | 'P10'
  | 'P11'
  | 'P12'
  | 'P13'

/** A promise that an engine keeps only in part. */
export interface Weakness {
  readonly promise: PromiseId
  /** The possible effects, and their conditions. */
  readonly how: string
}

/** The guarantees of an engine. It keeps all promises that `weaknesses` does not name. */
export interface Guarantees {
  readonly engine: string
  /** The processes among which it excludes. */
  readonly scope: 'thread' | 'machine' | 'network'
  /** The event that frees the grants of a crashed process. */
  readonly deadHolder: 'at once' | 'session timeout' | 'lease'
  /** The failures that committed values survive; `none` if the engine keeps only locks. */
  readonly durability: 'none' | 'process' | 'process crash' | 'power loss' | 'replication'
  readonly weaknesses: readonly Weakness[]
}
