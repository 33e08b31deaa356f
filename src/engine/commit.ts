import type { Commit, CommitOutcome, List, ReadOutcome, ReadSet, RecordedId, Versioned } from './contract.js'

/** The storage of values, for engines that use `StateMachine`. */
export interface StoreState {
  /** The values of these keys, in their order. */
  values(keys: readonly string[]): readonly Versioned[]
  /** Lists keys that have values. */
  list(list: List): readonly string[]
  /** Writes a value, or deletes the key for `undefined`. */
  put(key: string, value: string | undefined, version: number): void
  /** The next version: greater than every earlier version of any key, also after a crash. */
  nextVersion(): number
  /** Whether each of these IDs is recorded, in their order. */
  recorded(ids: readonly RecordedId[]): readonly boolean[]
  /** Records the ID with the key for at least `retention` milliseconds. */
  record(key: string, id: string, retention: number): void
}

/** Reads values, and looks up IDs. */
export function readAll(state: StoreState, what: ReadSet): ReadOutcome {
  return { values: state.values(what.keys), seen: state.recorded(what.ids) }
}

/**
 * Decides a commit, and writes everything or nothing. The lock table releases the guard.
 * @param guardHolds whether the guard is held; true without a guard.
 */
export function decideCommit(state: StoreState, commit: Commit, guardHolds: boolean): CommitOutcome {
  if (!guardHolds || !commit.guard) {
    // IDs are recorded under the locks of their keys, so a caller that has held these since its lookup needs no further
    // one. But if the answer to a commit was lost, its repetition finds the guard released.
    const repeated = state.recorded(commit.record).indexOf(true)
    if (repeated >= 0) return { state: 'repeated', ...commit.record[repeated]! }
  }
  // mutant: commit-ignores-locks
  if (!guardHolds) return { state: 'lost' }
  const found = state.values(commit.expect.map(({ key }) => key))
  for (const [index, { key, version }] of commit.expect.entries()) {
    // mutant: commit-ignores-versions
    if (found[index]!.version !== version) return { state: 'conflict', key, found: found[index]! }
  }
  const versions = commit.writes.map(({ key, value }) => {
    // A deletion takes a version too, so that a version that was read before it is never used again.
    const version = state.nextVersion()
    state.put(key, value, version)
    return value === undefined ? 0 : version
  })
  // mutant: commit-without-ids
  for (const { key, id } of commit.record) state.record(key, id, commit.retention)
  return { state: 'committed', versions }
}
