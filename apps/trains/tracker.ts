import { open, TimedOutError, type Box, type Party } from 'signalbox'
import { locationKey } from './domain/location.js'
import type { Outages } from './outages.js'
import { patientStore } from './patient-store.js'
import type { ChainLimits } from './worker/train-chains.js'
import type { TrainStore } from './store.js'
import { UnlockedStore, type PlainStore } from './unlocked-store.js'

/** The name of the store that the tracker keeps trains and locations in. */
const STORE = 'trains'

/**
 * Held over a run: two on one engine would overwrite each other's values, each taking those of the other for absent.
 */
const RUN_LOCK = 'trains-run'
/** How long a run that was killed keeps others away, where nothing proves it dead: milliseconds. */
const RUN_LEASE = 10_000
/** Another run is waited for as long as one that was killed may seem alive: milliseconds. */
const RUN_WAIT = { 'at once': 1000, 'session timeout': 15_000, lease: 15_000 }

/**
 * How a process of the tracker uses the store. `together`: messages that come at the same time share their locks and
 * their commit. `alone`: each takes its own, which is slower, but none has to wait for the locks of others. `unlocked`:
 * without locks and version checks.
 */
export type StoreUse = 'together' | 'alone' | 'unlocked'

/** How much goes on at the store of a process at the same time. */
export const LIMITS: Readonly<Record<StoreUse, ChainLimits>> = {
  together: { together: 256, run: 16, atOnce: 8, patience: 3 },
  alone: { together: 1, run: 1, atOnce: 4, patience: 0 },
  unlocked: { together: 1, run: 1, atOnce: 128, patience: 0 },
}

/** A location whose lock is in use. */
export interface LockInUse {
  readonly location: string
  /** The labels of the boxes that hold it, and of those that wait for it, in the order in which they are served. */
  readonly holders: readonly string[]
  readonly waiters: readonly string[]
}

/** What one process of the tracker has open: the only place where the tracker meets Signalbox. */
export interface Tracker {
  /** What a supervisor revokes when this process has died. */
  readonly session: string
  readonly store: TrainStore
  /** Keeps other runs away until `close`; false when one that is not known to be dead is there and stays. */
  claimRun(): Promise<boolean>
  /** Frees at once what the session of a dead process held. */
  revoke(session: string): Promise<void>
  /** The locations whose locks are in use at this moment. */
  locks(): Promise<readonly LockInUse[]>
  close(): Promise<void>
}

/**
 * Opens the tracker's store on an engine.
 * @param outages says how long the engine is waited for once it is open.
 * @throws what `open` of Signalbox throws.
 */
export async function openTracker(
  engine: string,
  label: string,
  use: StoreUse,
  outages: Outages,
): Promise<Tracker> {
  // Handlers take no further locks, so there is no circle to look for.
  const box = await open(engine, { label, detectDeadlocks: false })
  return {
    session: box.session,
    store: patientStore(use === 'unlocked' ? new UnlockedStore(plainStore(box)) : lockedStore(box), outages),
    async claimRun() {
      try {
        const wait = RUN_WAIT[box.guarantees.deadHolder]
        // What a try of which nothing was heard may hold is free within the wait of the next one.
        await outages.sitOut(() => box.mutex(RUN_LOCK).acquire({ wait, lease: RUN_LEASE, label }))
        return true
      } catch (error) {
        if (error instanceof TimedOutError) return false
        throw error
      }
    },
    async revoke(session) {
      await outages.sitOut(() => box.revoke(session))
    },
    async locks() {
      const prefix = `${STORE}/${locationKey('')}`
      const locks: LockInUse[] = []
      for await (const { key, holders, waiters } of box.inspect(prefix)) {
        const location = key.slice(prefix.length)
        locks.push({ location, holders: holders.map(labelOf), waiters: waiters.map(labelOf) })
      }
      return locks
    },
    close: () => box.close(),
  }
}

function labelOf({ label, pid }: Party): string {
  return label?.replace(/^trains /, '') ?? `process ${pid}`
}

function lockedStore(box: Box): TrainStore {
  const store = box.store(STORE)
  return {
    get: async key => (await store.get(key))?.value,
    async put(key, value) {
      await store.put(key, value)
    },
    transaction: (keys, change, { parts, ...options }) =>
      store.transaction(keys, change, { ...options, id: parts }),
  }
}

function plainStore(box: Box): PlainStore {
  const store = box.store(STORE)
  return {
    get: async key => (await store.get(key))?.value,
    async put(key, value) {
      await store.put(key, value)
    },
    async delete(key) {
      await store.delete(key)
    },
  }
}
