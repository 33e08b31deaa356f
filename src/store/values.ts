import type {
  Commit,
  CommitOutcome,
  List,
  ReadOutcome,
  ReadSet,
  SqlTransaction,
  Write,
} from '../engine/contract.js'
import type { LocalGrant } from '../core/grant.js'
import type { AcquireTerms } from '../core/lock-options.js'
import type { LocalQueue } from '../core/local-queue.js'
import type { OnChange, Watching } from '../core/watchers.js'

/** Where a store keeps its values: in the engine next to the locks, or in the caller's records. */
export interface Values {
  /** Whether a commit can check only keys whose locks it holds. */
  readonly checksOnlyLocked: boolean
  /** Whether a commit can be part of the caller's transaction. */
  readonly join: boolean
  read(what: ReadSet): Promise<ReadOutcome>
  /** @throws InvalidArgumentError if keys can't be listed */
  list(what: Omit<List, 'type'>): Promise<readonly string[]>
  /** Writes one value without its lock; with a version, only if the key has that version. */
  write(write: Write, version: number | undefined, retention: number): Promise<CommitOutcome>
  /** Acquires the locks of a local queue, and reads values under them. */
  hold(queue: LocalQueue, request: AcquireTerms, what: ReadSet): Promise<HeldValues>
  /** @throws InvalidArgumentError if changes are not reported */
  watch(key: string, task: OnChange): Promise<Watching>
}

/** Values that were read under their locks. */
export interface HeldValues {
  readonly grant: LocalGrant
  readonly read: ReadOutcome
  /**
   * Commits and releases the locks, if they are held and all keys have their expected versions. Otherwise does neither.
   * @param within the caller's transaction that the commit becomes part of, if {@link Values.join}. Others get the
   * locks when it has ended.
   */
  commit(commit: HeldCommit, within: SqlTransaction | undefined): Promise<CommitOutcome>
}

export type HeldCommit = Pick<Commit, 'expect' | 'writes' | 'record' | 'retention'>
