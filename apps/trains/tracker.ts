import { open, type Box } from 'signalbox'
import type { TrainStore } from './store.js'
import { UnlockedStore, type PlainStore } from './unlocked-store.js'

/** The name of the store that the tracker keeps trains and locations in. */
const STORE = 'trains'

/** How many messages of one train that follow each other are applied as one transaction at the most. */
const RUN = 8

/** How many transactions may share their locks and their commit, and for how long their handlers may run together. */
const GROUP = { most: 64 / RUN, within: '20ms' } as const

/**
 * How a process of the tracker uses the store. `together`: messages that come at the same time share their locks and
 * their commit. `alone`: each takes its own, which is slower, but none has to wait for the locks of others. `unlocked`:
 * without locks and version checks.
 */
export type StoreUse = 'together' | 'alone' | 'unlocked'

/** How many messages of one train a process applies as one transaction at the most. */
export const LONGEST_RUN: Readonly<Record<StoreUse, number>> = { together: RUN, alone: 1, unlocked: 1 }

/** For how many trains a process is at the store at the same time at the most: what is under way, and what is next. */
export const MOST_AT_STORE: Readonly<Record<StoreUse, number>> = {
  together: 2 * GROUP.most,
  alone: 4,
  unlocked: 128,
}

/** What one process of the tracker has open: the only place where the tracker meets Signalbox. */
export interface Tracker {
  /** What a supervisor revokes when this process has died. */
  readonly session: string
  readonly store: TrainStore
  /** Frees at once what the session of a dead process held. */
  revoke(session: string): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the tracker's store on an engine.
 * @throws what `open` of Signalbox throws.
 */
export async function openTracker(engine: string, label: string, use: StoreUse): Promise<Tracker> {
  // Handlers take no further locks, so there is no circle to look for.
  const box = await open(engine, { label, detectDeadlocks: false })
  return {
    session: box.session,
    store: use === 'unlocked' ? new UnlockedStore(plainStore(box)) : lockedStore(box, use),
    async revoke(session) {
      await box.revoke(session)
    },
    close: () => box.close(),
  }
}

function lockedStore(box: Box, use: StoreUse): TrainStore {
  const store = box.store(STORE, use === 'together' ? { group: GROUP } : {})
  return {
    get: async key => (await store.get(key))?.value,
    async put(key, value) {
      await store.put(key, value)
    },
    transaction: (keys, change, { ids, ...options }) =>
      store.transaction(keys, change, { ...options, id: ids }),
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
