import { open, type Box } from 'signalbox'
import type { TrainStore } from './store.js'
import { UnlockedStore, type PlainStore } from './unlocked-store.js'

/** The name of the store that the tracker keeps trains and locations in. */
const STORE = 'trains'

/** How many messages may share their locks and their commit, and for how long they are collected at the most. */
const GROUP = { most: 64, within: '20ms' } as const

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
 * @param unlocked leaves out locks and version checks.
 * @throws what `open` of Signalbox throws.
 */
export async function openTracker(engine: string, label: string, unlocked: boolean): Promise<Tracker> {
  const box = await open(engine, { label })
  return {
    session: box.session,
    store: unlocked ? new UnlockedStore(plainStore(box)) : lockedStore(box),
    async revoke(session) {
      await box.revoke(session)
    },
    close: () => box.close(),
  }
}

function lockedStore(box: Box): TrainStore {
  const store = box.store(STORE, { group: GROUP })
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
