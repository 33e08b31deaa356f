import type { Commit, CommitOutcome, ReadOutcome, ReadSet, Versioned } from '../engines/engine.js'

/** Where values are kept, for engines that decide commits by {@link decideCommit}. */
export interface StoreState {
  get(key: string): Versioned
  /** Writes a value, or deletes the key for `undefined`. */
  put(key: string, value: string | undefined, version: number): void
  /** The next version: greater than every one before, of any key, whatever crashed. */
  nextVersion(): number
  recorded(key: string, id: string): boolean
  /** Keeps the id with the key until `until`, in the engine's time, at least. */
  record(key: string, id: string, until: number): void
}

/** Reads values and looks for ids. */
export function readAll(state: StoreState, what: ReadSet): ReadOutcome {
  return {
    values: what.keys.map(key => state.get(key)),
    seen: what.ids.map(({ key, id }) => state.recorded(key, id)),
  }
}

/**
 * Decides a commit: checks all, then writes all or nothing. Releasing the guard is left to the lock table.
 * @param guardHolds whether the guarding grant is held at `now`; true without a guard.
 */
export function decideCommit(
  state: StoreState,
  commit: Commit,
  guardHolds: boolean,
  now: number,
): CommitOutcome {
  // A repetition whose first answer was lost finds its ids before it finds its grant released.
  for (const { key, id } of commit.record) if (state.recorded(key, id)) return { state: 'repeated', key, id }
  if (!guardHolds) return { state: 'lost' }
  for (const { key, version } of commit.expect) {
    const found = state.get(key)
    if (found.version !== version) return { state: 'conflict', key, found }
  }
  const versions = commit.writes.map(({ key, value }) => {
    // A deletion takes a version, too, so that one that was read before it is never met again.
    const version = state.nextVersion()
    state.put(key, value, version)
    return value === undefined ? 0 : version
  })
  for (const { key, id } of commit.record) state.record(key, id, now + commit.retention)
  return { state: 'committed', versions }
}
