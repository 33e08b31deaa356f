import { LockTable } from './lock-table.js'
import type { Effect, TableState } from './table-state.js'
import { decideCommit, readAll, type StoreState } from './commit.js'
import type {
  CheckIn,
  Commit,
  CommitOutcome,
  Enqueue,
  Operation,
  OutcomeOf,
  RequestStatus,
} from './contract.js'

/** The sessions that watch store keys. */
export interface WatchState {
  watch(session: string, key: string): void
  unwatch(session: string, key: string): void
  /** The sessions that watch these keys, each with the key. */
  watchers(keys: readonly string[]): readonly { readonly session: string; readonly key: string }[]
}

/** A store key that the session watches has changed. */
export interface ChangedEffect {
  readonly type: 'changed'
  readonly session: string
  readonly key: string
}

/** A hint for another session after an operation. */
export type AnyEffect = Effect | ChangedEffect

/**
 * Decides every operation of the contract on one state, for engines that keep the lock table themselves. Like the
 * table, it does no I/O and has no clock.
 */
export class StateMachine {
  readonly #state: TableState & StoreState & WatchState
  readonly #notify: (effect: AnyEffect) => void
  readonly #table: LockTable

  /** @param notify takes the hints for other sessions, to be sent after the operation. */
  constructor(state: TableState & StoreState & WatchState, notify: (effect: AnyEffect) => void) {
    this.#state = state
    this.#notify = notify
    this.#table = new LockTable(state, notify)
  }

  /** Executes one operation at the engine's time `now`. */
  decide<O extends Operation>(operation: O, now: number): OutcomeOf<O>
  decide(operation: Operation, now: number): OutcomeOf<Operation> {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#decideRequest(operation, now)
      case 'read':
        return readAll(this.#state, operation)
      case 'list':
        return this.#state.list(operation)
      case 'commit':
        return this.#commit(operation, now)
      case 'watch':
        this.#state.watch(operation.session, operation.key)
        return undefined
      case 'unwatch':
        this.#state.unwatch(operation.session, operation.key)
        return undefined
      default:
        return this.#table.decide(operation, now)
    }
  }

  /** Decides a request and, if it is granted, reads the values that it asks for. */
  #decideRequest(operation: Enqueue | CheckIn, now: number): RequestStatus {
    const status = this.#table.decide(operation, now)
    if (!operation.read || status.state !== 'held') return status
    return { ...status, read: readAll(this.#state, operation.read) }
  }

  #commit(commit: Commit, now: number): CommitOutcome {
    const { guard, release, writes } = commit
    const holds = !guard || this.#table.holding(guard, now) !== undefined
    const outcome = decideCommit(this.#state, commit, holds)
    if (outcome.state !== 'committed') return outcome
    if (guard && release) this.#table.decide({ type: 'release', ...guard }, now)
    for (const { session, key } of this.#state.watchers(writes.map(write => write.key))) {
      // mutant: no-change-hints
      this.#notify({ type: 'changed', session, key })
    }
    return outcome
  }
}
