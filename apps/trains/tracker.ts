import { open, TimedOutError, type Party, type StoreOptions } from 'signalbox'
import { locationKey } from './domain/location.js'
import type { Outages } from './outages.js'
import { RunStore, type Retry } from './run-store.js'
import { unlockedStore } from './unlocked-store.js'
import type { QueueLimits } from './worker/train-queues.js'

/** The name of the store that the tracker keeps trains and locations in. */
const STORE = 'trains'

/**
 * Held over a run: two on one engine would overwrite each other's values, each taking those of the other for absent.
 */
const RUN_LOCK = 'trains-run'
/** How long a run that was killed keeps others away, where nothing proves it dead, in milliseconds. */
const RUN_LEASE = 10_000
/** Another run is waited for as long as one that was killed may seem alive, in milliseconds. */
const RUN_WAIT = { 'at once': 1000, 'session timeout': 15_000, lease: 15_000 }

/**
 * How a process of the tracker uses the store. `together`: messages that come at the same time share their locks and
 * their commit. `alone`: each takes its own, which is slower, but none has to wait for the locks of others. `unlocked`:
 * without locks and version checks.
 */
export type StoreUse = 'together' | 'alone' | 'unlocked'

/** How much a process works on at the same time, and the options of its store. */
export const USES: Readonly<Record<StoreUse, { limits: QueueLimits; store: StoreOptions }>> = {
  together: { limits: { run: 16, atOnce: 128 }, store: { group: { maxSize: 64, maxTime: 20 } } },
  alone: { limits: { run: 1, atOnce: 4 }, store: {} },
  unlocked: { limits: { run: 1, atOnce: 128 }, store: {} },
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
  /** The store as a run of this name sees it. */
  store(run: string): RunStore
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
  const store = box.store(STORE, USES[use].store)
  const retry: Retry = task => outages.retryDuringOutage(task, () => box.ping())
  return {
    session: box.session,
    store: run => new RunStore(use === 'unlocked' ? unlockedStore(store) : store, run, retry),
    async claimRun() {
      try {
        const wait = RUN_WAIT[box.guarantees.deadHolder]
        // What an attempt without a reply may hold is free within the wait of the next one.
        await retry(() => box.mutex(RUN_LOCK).acquire({ wait, lease: RUN_LEASE, label }))
        return true
      } catch (error) {
        if (error instanceof TimedOutError) return false
        throw error
      }
    },
    async revoke(session) {
      await retry(() => box.revoke(session))
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
