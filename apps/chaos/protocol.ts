import type { Counts, LockEnd, StoreCall, Transfer } from './history.js'

/** The settings of a client process, as JSON in its only argument. */
export interface ClientSettings {
  /** Its life, like `2.1`. */
  readonly who: string
  readonly url: string
  /** Whose locks it uses; absent: Signalbox's. */
  readonly peer?: PeerName
  readonly seed: number
  /** What the names of locks and stores of this run begin with. */
  readonly run: string
  /** How long a lock outlives silence, in milliseconds. */
  readonly lease: number
}

export type PeerName = 'redlock' | 'redis-semaphore'

/** What a client says. Times, but `wall`, are of the machine's monotonic clock; `call` numbers what the client does. */
export type FromClient =
  | { readonly say: 'ready' }
  /** It can't begin. */
  | { readonly say: 'failed'; readonly message: string }
  /** Something was thrown that should never be. */
  | { readonly say: 'escaped'; readonly message: string }
  /** Its wall clock was shifted, and this is what it shows now. */
  | { readonly say: 'shifted'; readonly wall: number }
  /** It did not run in that time. */
  | { readonly say: 'stalled'; readonly from: number; readonly until: number }
  | { readonly say: 'asked'; readonly call: number; readonly key: string; readonly at: number }
  /** It saw requests in a queue: their labels, which are the client that asked and its number of the call. */
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
 * Messages to a client: to stop, the answer of the resource to its call, or how far its wall clock must be ahead of the
 * true time, in milliseconds.
 */
export type ToClient =
  | { readonly order: 'stop' }
  | { readonly order: 'answer'; readonly call: number; readonly counts: Counts }
  | { readonly order: 'shift clock'; readonly ahead: number }

/** The accounts that money moves between, and the counters. */
export const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora'] as const
export const COUNTERS = ['one', 'two', 'three'] as const

/** The counter that several tasks of each client ask for, so that there is always a queue for it. */
export const crowdOf = (run: string): string => `{${run}}:crowd`

/**
 * The store of the accounts and the one of single values, below what a run's names begin with. The braces keep all
 * accounts in one slot of a Redis Cluster, which a transaction has to have.
 */
export const accountsOf = (run: string): string => `{${run}-accounts}`
export const valuesOf = (run: string): string => `${run}-values`
