/** The promises of Signalbox by number; `docs/guarantees.md` has their full text. */
export type PromiseId =
  'P1' | 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P8' | 'P9' | 'P10' | 'P11' | 'P12' | 'P13'

/** A promise that an engine keeps only in part, and how. */
export interface Weakness {
  readonly promise: PromiseId
  /** What can happen, and when. */
  readonly how: string
}

/** What an engine guarantees. Promises that `weaknesses` does not name are kept whole. */
export interface Guarantees {
  readonly engine: string
  /** Between whom it excludes. */
  readonly scope: 'thread' | 'machine' | 'network'
  /** What frees the grants of a crashed process. */
  readonly deadHolder: 'at once' | 'session timeout' | 'lease'
  /** What committed state survives; `none` where no state is kept but locks. */
  readonly durability: 'none' | 'process' | 'process crash' | 'power loss' | 'replication'
  readonly weaknesses: readonly Weakness[]
}
