/**
 * All that clients, resource and harness saw in one run. Times are milliseconds since its start, to the microsecond, on
 * the machine's monotonic clock, which all processes share: a cause is never later than what it causes.
 */
export interface History {
  /** How long a lock outlives silence, in milliseconds. */
  readonly lease: number
  /**
   * How long after a fault everything has to continue again, by kind of fault, or by what is measured, in milliseconds.
   */
  readonly limits: Readonly<Record<string, number>>
  readonly requests: readonly LockRequest[]
  /** In the order in which the resource was asked. */
  readonly updates: readonly Update[]
  /** What was in the registers of each counter when all was over. */
  readonly counters: Readonly<Record<string, Counts>>
  readonly transfers: readonly Transfer[]
  readonly calls: readonly StoreCall[]
  readonly faults: readonly Fault[]
  readonly stalls: readonly Stall[]
  /** What was in the accounts when all was over; absent where no values are kept. */
  readonly accounts?: Readonly<Record<string, Account>>
  /** What escaped from the library although no promise allows it. */
  readonly escapes: readonly string[]
}

/** What is in both registers that the resource has for a counter. */
export interface Counts {
  readonly fenced: number
  readonly unfenced: number
}

/** A client wanted a lock. */
export interface LockRequest {
  /** The life of the client, like `2.1` for what came after the first crash of client 2. */
  readonly who: string
  readonly key: string
  readonly asked: number
  /** When it was seen in the queue. */
  queued?: number
  granted?: number
  /** Absent for locks that have none. */
  token?: string
  /** The last moment at which the lock said that it is held. */
  heldUntil?: number
  /** When the release was asked for. */
  leaving?: number
  /** When the request, or the grant, was over. */
  left?: number
  end?: LockEnd
}

/** A process did not run for a quarter of a lease, or of a second if that is less, or longer, for any reason. */
export interface Stall {
  /** The life of the client; absent for the harness, through which the clients reach the engine. */
  readonly who?: string
  readonly from: number
  readonly until: number
}

/** How it was over: without a grant, or with a grant that was given back, was lost, or may be either. */
export type LockEnd = 'refused' | 'released' | 'lost' | 'unknown'

/** A client wrote to a counter of the resource one more than it had read. */
export interface Update {
  /** Whether the resource refused tokens that are smaller than the greatest it has seen. */
  readonly fenced: boolean
  readonly who: string
  readonly key: string
  readonly at: number
  readonly token?: string
  readonly read: number
  /** What was there when it was written. */
  readonly found: number
  readonly accepted: boolean
}

/**
 * A delivery of a transfer of money from one account to another, in a transaction with an id. When all clients have
 * ended, the harness delivers again what may have been done.
 */
export interface Transfer {
  readonly who: string
  readonly id: string
  readonly from: string
  readonly to: string
  readonly amount: number
  readonly asked: number
  settled?: number
  /** `repeated`: it was done before under this id; `unknown`: it may have been done. Absent: its client died. */
  end?: 'applied' | 'repeated' | 'refused' | 'unknown'
  /** The number that this change has in each of the two accounts. */
  changes?: Readonly<Record<string, number>>
}

/** An account as the store has it. */
export interface Account {
  readonly balance: number
  /** How often it was changed. */
  readonly changes: number
}

/** A client used one key of the store. */
export interface StoreCall {
  readonly who: string
  readonly key: string
  readonly kind: 'get' | 'put' | 'compareAndSet'
  readonly from: number
  /** What is written, each value once; of a `get` what was found, '' when nothing. */
  value?: string
  /** What a compare-and-set expects to find, '' for nothing. */
  readonly expected?: string
  until?: number
  /** `conflict`: another value was there; `refused`: certainly not done; `unknown` or absent: perhaps done. */
  end?: 'done' | 'conflict' | 'refused' | 'unknown'
  /** The version of what was found or written. */
  version?: number
}

/** Something that the harness did to a client, its network, or the server. */
export interface Fault {
  readonly kind: string
  /** The client; absent when it concerned all. */
  readonly client?: number
  readonly at: number
  /** When the harness had made good what it did. */
  readonly until: number
  /** The key that the client held. */
  readonly key?: string
  /**
   * How long it took until everything continued; absent: longer than the harness looked. A grant shows it: after a kill
   * or stop, one to others, of the key that the client held or, if it held none, of any; after other faults of a
   * client, one to itself; after a fault of all, the last of the first grants to each client.
   */
  readonly recovery?: number
  /**
   * How long others had to wait for the key of a client that was silenced; absent as `recovery` is, or without a key.
   */
  readonly others?: number
  /** The run was interrupted before everything continued: what the fault cost isn't known. */
  readonly interrupted?: true
}
