/**
 * All events that clients, resource and harness saw in one run. Times are milliseconds since its start, to the
 * microsecond. All processes share the machine's monotonic clock, so a cause is never later than its effect.
 */
export interface History {
  /** Lease of a lock, in milliseconds. */
  readonly lease: number
  /** Maximum recovery time by kind of fault, or by measurement, in milliseconds. */
  readonly limits: Readonly<Record<string, number>>
  readonly requests: readonly LockRequest[]
  /** Updates in the order in which the resource received them. */
  readonly updates: readonly Update[]
  /** The registers of each counter at the end of the run. */
  readonly counters: Readonly<Record<string, Counts>>
  readonly transfers: readonly Transfer[]
  readonly calls: readonly StoreCall[]
  readonly faults: readonly Fault[]
  readonly stalls: readonly Stall[]
  /** The accounts at the end of the run; absent if the run stores no values. */
  readonly accounts?: Readonly<Record<string, Account>>
  /** Errors that the library must not throw, and clients that did not end properly. */
  readonly escapes: readonly string[]
}

/** The values of both registers that the resource has for a counter. */
export interface Counts {
  readonly fenced: number
  readonly unfenced: number
}

/** A request of a client for a lock. */
export interface LockRequest {
  /** The life of the client, such as `2.5`: client 2, in the fifth process that the run started. */
  readonly who: string
  readonly key: string
  readonly asked: number
  /** Time at which another task saw the request in the queue. */
  queued?: number
  granted?: number
  /** Absent for locks without tokens. */
  token?: string
  /** The last time at which the lock was reported as held. */
  heldUntil?: number
  /** Time at which the client asked for the release. */
  leaving?: number
  /** Time at which the request, or the grant, ended. */
  left?: number
  end?: LockEnd
}

/**
 * A period in which a process did not run, for any reason, that is at least a quarter of a lease, or of a second if
 * that is shorter.
 */
export interface Stall {
  /** The life of the client; absent for the harness. Clients reach the engine through the harness. */
  readonly who?: string
  readonly from: number
  readonly until: number
}

/** The end of a request: `refused` means without a grant, `unknown` that the grant was either released or lost. */
export type LockEnd = 'refused' | 'released' | 'lost' | 'unknown'

/** A write to a counter of the resource, of one more than the client had read. */
export interface Update {
  /** Whether the register refuses tokens that are smaller than the greatest it has seen. */
  readonly fenced: boolean
  readonly who: string
  readonly key: string
  readonly at: number
  readonly token?: string
  readonly read: number
  /** The value just before the write. */
  readonly found: number
  readonly accepted: boolean
}

/**
 * A delivery of a transfer of money from one account to another, in a transaction with an id. When all clients have
 * ended, the harness delivers transfers with an unknown outcome again.
 */
export interface Transfer {
  readonly who: string
  readonly id: string
  readonly from: string
  readonly to: string
  readonly amount: number
  readonly asked: number
  settled?: number
  /** `repeated`: already done under this id; `unknown`: perhaps done. Absent if the client died. */
  end?: 'applied' | 'repeated' | 'refused' | 'unknown'
  /** The number of this change in each of the two accounts. */
  changes?: Readonly<Record<string, number>>
}

/** An account in the store. */
export interface Account {
  readonly balance: number
  /** Number of changes. */
  readonly changes: number
}

/** A call of a client on one key of the store. */
export interface StoreCall {
  readonly who: string
  readonly key: string
  readonly kind: 'get' | 'put' | 'compareAndSet'
  readonly from: number
  /** The value that is written, unique to this call. For `get` the value that was found, or '' if none. */
  value?: string
  /** The value that a compare-and-set expects, or '' for none. */
  readonly expected?: string
  until?: number
  /** `conflict`: the key had another value; `refused`: certainly not done; `unknown` or absent: perhaps done. */
  end?: 'done' | 'conflict' | 'refused' | 'unknown'
  /** The version of the value that was found or written. */
  version?: number
}

/** A disturbance of a client, its network, the server or the values by the harness. */
export interface Fault {
  readonly kind: string
  /** The number of the client, from 1; absent if the fault affected all clients. */
  readonly client?: number
  readonly at: number
  /** Time at which the harness had reverted the fault. */
  readonly until: number
  /** The key that the client held, if any. */
  readonly key?: string
  /**
   * Time until everything continued, in milliseconds; absent if the harness gave up before. A grant shows it. After a
   * kill or stop, this is a grant to another client, of the key that the client held or, if it held none, of any key.
   * After other faults of a client, it is a grant to the client itself. After a fault of all clients, it is the last of
   * the first grants to each client.
   */
  readonly recovery?: number
  /**
   * Time that others had to wait for the key of a client that was cut off, in milliseconds; absent if the harness gave
   * up before, or the client held no key.
   */
  readonly others?: number
  /** Present if the run was interrupted before everything continued, so the recovery time is unknown. */
  readonly interrupted?: true
}
