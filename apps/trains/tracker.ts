import { open, type Box } from 'signalbox'
import type { TrainStore } from './store.js'
import { UnlockedStore, type PlainStore } from './unlocked-store.js'

/** The name of the store that the tracker keeps trains and locations in. */
const STORE = 'trains'

/** How many messages may share their locks and their commit, and for how long their handlers may run together. */
const GROUP = { most: 64, within: '20ms' } as const

/**
 * How a process of the tracker uses the store. `together`: messages that come at the same time share their locks and
 * their commit. `alone`: each takes its own, which is slower, but none has to wait for the locks of others. `unlocked`:
 * without locks and version checks.
 */
export type StoreUse = 'together' | 'alone' | 'unlocked'

/** How many messages a process has at the store at the same time at the most: what is under way, and what is next. */
export const MOST_AT_STORE: Readonly<Record<StoreUse, number>> = {
  together: 2 * GROUP.most,
  alone: 16,
  unlocked: 2 * GROUP.most,
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
  const box = await open(engine, { label })
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
    transaction: (keys, change, options) => store.transaction(keys, change, options),
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
