import type { Counts, LockEnd, StoreCall, Transfer } from './history.js'

/** The settings of a client process, as JSON in its only argument. */
export interface ClientSettings {
  /** The life of the client, such as `2.5`. */
  readonly who: string
  readonly url: string
  /** The library whose locks it uses; absent for Signalbox. */
  readonly peer?: PeerName
  readonly seed: number
  /** Prefix of the names of locks and stores of this run. */
  readonly run: string
  /** Lease of a lock, in milliseconds. */
  readonly lease: number
}

export type PeerName = 'redlock' | 'redis-semaphore'

/**
 * Messages from a client. Times except `wall` are of the machine's monotonic clock. `call` numbers the client's
 * actions.
 */
export type FromClient =
  | { readonly say: 'ready' }
  /** The client cannot start. */
  | { readonly say: 'failed'; readonly message: string }
  /** The client caught an error that must never occur. */
  | { readonly say: 'escaped'; readonly message: string }
  /** The client has shifted its wall clock, which now shows `wall`. */
  | { readonly say: 'shifted'; readonly wall: number }
  /** The client did not run in that period. */
  | { readonly say: 'stalled'; readonly from: number; readonly until: number }
  | { readonly say: 'asked'; readonly call: number; readonly key: string; readonly at: number }
  /** The client saw requests in a queue. A label is the client that made the request and the number of its call. */
  | { readonly say: 'seen'; readonly labels: readonly string[]; readonly at: number }
  | { readonly say: 'held' | 'leaving'; readonly call: number; readonly at: number }
  | { readonly say: 'granted'; readonly call: number; readonly at: number; readonly token?: string }
  | { readonly say: 'left'; readonly call: number; readonly at: number; readonly end: LockEnd }
  | { readonly say: 'read'; readonly call: number; readonly key: string; readonly token?: string }
  | {
      readonly say: 'write'
      readonly call: number
      readonly key: string
      readonly token?: string
      readonly read: Counts
    }
  | { readonly say: 'transfer'; readonly call: number; readonly transfer: Transfer }
  | ({ readonly say: 'transferred'; readonly call: number; readonly at: number } & Pick<
      Transfer,
      'end' | 'changes'
    >)
  | { readonly say: 'storeCall'; readonly call: number; readonly storeCall: StoreCall }
  | ({ readonly say: 'storeCalled'; readonly call: number; readonly at: number } & Pick<
      StoreCall,
      'end' | 'value' | 'version'
    >)

/**
 * Messages to a client: an order to stop, the resource's answer to a call, or an order to set the wall clock `ahead`
 * milliseconds ahead of the true time.
 */
export type ToClient =
  | { readonly order: 'stop' }
  | { readonly order: 'answer'; readonly call: number; readonly counts: Counts }
  | { readonly order: 'shift clock'; readonly ahead: number }

/** The accounts that transfers use, and the counters. */
export const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora'] as const
export const COUNTERS = ['one', 'two', 'three'] as const

/** Returns the counter that several tasks of each client want, so that it always has a queue. */
export const crowdOf = (run: string): string => `{${run}}:crowd`

/**
 * Return the names of the stores of a run, for accounts and for single values. The braces keep all accounts in one slot
 * of a Redis Cluster, which a transaction needs.
 */
export const accountsOf = (run: string): string => `{${run}-accounts}`
export const valuesOf = (run: string): string => `${run}-values`
