import { open, TimedOutError, type Party, type StoreOptions } from 'signalbox'
import { locationKey } from './domain/location.js'
import type { LockInUse, LockUser } from './lock-in-use.js'
import type { Outages } from './outages.js'
import { RunStore, type Retry } from './run-store.js'
import { unlockedStore } from './store.js'
import type { QueueLimits } from './worker/train-queues.js'

const STORE = 'trains'

/**
 * Name of the lock that a run holds. Without it, two runs on one engine would overwrite each other's values, because
 * each ignores those of the other.
 */
const RUN_LOCK = 'trains-run'
/**
 * Lease of that lock, in milliseconds. A killed run excludes others this long if the engine does not notice its death.
 */
const RUN_LEASE = 10_000
/** Maximum time to wait for another run, in milliseconds. Longer than a killed run excludes others. */
const RUN_WAIT = { 'at once': 1000, 'session timeout': 15_000, lease: 15_000 }

/**
 * The use of the store by a process. `together`: concurrent messages share locks and a commit. `alone`: each message
 * has its own, which is slower, but it need not wait for locks that only others need. `unlocked`: no locks and no
 * version checks.
 */
export type StoreUse = 'together' | 'alone' | 'unlocked'

/** The concurrency of a process, and the options of its store. */
export const USES: Readonly<Record<StoreUse, { limits: QueueLimits; store: StoreOptions }>> = {
  together: { limits: { run: 64, atOnce: 16 }, store: { group: { maxSize: 8, maxTime: 20 } } },
  alone: { limits: { run: 1, atOnce: 4 }, store: {} },
  unlocked: { limits: { run: 1, atOnce: 128 }, store: {} },
}

/** The access of a process to Signalbox. No other part of the tracker opens a box. */
export interface Tracker {
  /** The session that a supervisor revokes if this process dies. */
  readonly session: string
  /** Returns the store as the run of this name sees it. */
  store(run: string): RunStore
  /** Excludes other runs until `close`. Returns false if another run uses the engine. */
  claimRun(): Promise<boolean>
  /** Releases at once the locks that the session of a dead process held. */
  revoke(session: string): Promise<void>
  locks(): Promise<readonly LockInUse[]>
  close(): Promise<void>
}

export async function openTracker(
  engine: string,
  label: string,
  use: StoreUse,
  outages: Outages,
): Promise<Tracker> {
  // Handlers take no further locks, so they can't deadlock.
  const box = await open(engine, { label, detectDeadlocks: false })
  const store = box.store(STORE, USES[use].store)
  const retry: Retry = task => outages.retryDuringOutage(task, () => box.ping())
  return {
    session: box.session,
    store: run => new RunStore(use === 'unlocked' ? unlockedStore(store) : store, run, retry),
    async claimRun() {
      try {
        const wait = RUN_WAIT[box.guarantees.deadHolder]
        // If an attempt without a reply holds the lock, the lock is free again within the wait of the next attempt.
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
        locks.push({ location, holders: holders.map(userOf), waiters: waiters.map(userOf) })
      }
      return locks
    },
    close: () => box.close(),
  }
}

function userOf({ label, pid, age }: Party): LockUser {
  const [, worker, train] = /^trains (worker \d+)(?:: (.+))?$/s.exec(label ?? '') ?? []
  return { who: worker ?? label ?? `process ${pid}`, train, age }
}
