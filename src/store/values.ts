import type { Commit, CommitOutcome, ReadOutcome, ReadSet, Write } from '../engine/contract.js'
import type { LocalGrant } from '../core/grant.js'
import type { AcquireRequest } from '../core/lock-options.js'
import type { LocalQueue } from '../core/local-queue.js'
import type { OnChange, Watching } from '../core/watchers.js'

/** Where a store keeps its values: in the engine next to the locks, or in the caller's records. */
export interface Values {
  /** Whether a commit can check only what its locks protect. */
  readonly checksOnlyLocked: boolean
  /** Whether a commit can be part of a transaction of the caller's. */
  readonly join: boolean
  /** Reads without holding anything. */
  read(what: ReadSet): Promise<ReadOutcome>
  /** Writes one value round the locks; with a version only if the key still has that one. */
  write(write: Write, version: number | undefined, retention: number): Promise<CommitOutcome>
  /** Acquires the locks of a local queue and reads what they protect. */
  hold(queue: LocalQueue, request: AcquireRequest, what: ReadSet): Promise<HeldValues>
  /**
   * Calls `task` after each change of a key, until the returned object's `stop` is called.
   * @throws InvalidArgumentError where changes are not reported
   */
  watch(key: string, task: OnChange): Promise<Watching>
}

/** Values that were read under their locks. */
export interface HeldValues {
  readonly grant: LocalGrant
  readonly read: ReadOutcome
  /**
   * Commits and releases the locks, if the locks hold and all expected versions are there. Otherwise does neither.
   * @param within a transaction of the caller's that the commit is to be part of, where values {@link Values.join} one.
   * Others get the locks when it has ended.
   */
  commit(commit: HeldCommit, within: object | undefined): Promise<CommitOutcome>
}

/** A commit under locks that are held. */
export type HeldCommit = Pick<Commit, 'expect' | 'writes' | 'record' | 'retention'>
