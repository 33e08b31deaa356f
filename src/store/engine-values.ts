import type {
  Commit,
  CommitOutcome,
  List,
  ReadOutcome,
  ReadSet,
  SqlTransaction,
  Write,
} from '../engine/contract.js'
import { IndeterminateError } from '../base/errors.js'
import type { LocalGrant } from '../core/grant.js'
import type { AcquireTerms } from '../core/lock-options.js'
import type { LocalQueue } from '../core/local-queue.js'
import type { Session } from '../core/session.js'
import type { HeldCommit, HeldValues, Values } from './values.js'
import type { OnChange, Watching } from '../core/watchers.js'

/** Values in the engine: the grant also reads the values, and the commit also releases the locks. */
export class EngineValues implements Values {
  readonly checksOnlyLocked: boolean
  readonly join: boolean
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
    this.checksOnlyLocked = session.engine.checksOnlyLocked ?? false
    this.join = session.engine.commitWithin !== undefined
  }

  read({ keys, ids }: ReadSet): Promise<ReadOutcome> {
    return this.#session.submit({ type: 'read', keys, ids })
  }

  list(what: Omit<List, 'type'>): Promise<readonly string[]> {
    return this.#session.submit({ type: 'list', ...what })
  }

  write(write: Write, version: number | undefined, retention: number): Promise<CommitOutcome> {
    return this.#session.submit({
      type: 'commit',
      guard: undefined,
      expect: version === undefined ? [] : [{ key: write.key, version }],
      writes: [write],
      record: [],
      retention,
      release: false,
    })
  }

  async hold(queue: LocalQueue, request: AcquireTerms, read: ReadSet): Promise<HeldValues> {
    const grant = await this.#session.acquire(queue, { ...request, read })
    const { request: held, number } = grant.lease
    return {
      grant,
      read: grant.read!,
      commit: async (commit, within) => {
        if (within) return this.#commitWithin(commit, grant, within)
        const outcome = await this.#send(
          { ...commit, type: 'commit', guard: { request: held, number }, release: true },
          grant,
        )
        if (outcome.state === 'committed') queue.leases.releasedByCommit(grant)
        return outcome
      },
    }
  }

  watch(key: string, task: OnChange): Promise<Watching> {
    return this.#session.watch(key, task)
  }

  async #commitWithin(commit: HeldCommit, grant: LocalGrant, within: SqlTransaction): Promise<CommitOutcome> {
    const { lease } = grant
    lease.isBound = true
    const guard = { request: lease.request, number: lease.number }
    const bound: Commit = { ...commit, type: 'commit', guard, release: false }
    const outcome = await this.#session.engine.commitWithin!(bound, within)
    // Others get the keys only when the transaction has ended.
    if (outcome.state === 'committed') await grant.release().catch(() => undefined)
    return outcome
  }

  /**
   * Sends the commit. If its reply is lost, sends it again. It can't be applied twice, because it releases the grant.
   */
  async #send(commit: Commit, { lease }: LocalGrant): Promise<CommitOutcome> {
    const { deadline } = lease
    try {
      return await this.#session.submit(commit)
    } catch (error) {
      if (!(error instanceof IndeterminateError)) throw error
      const again = await this.#session.submit(commit).catch(() => {
        throw error
      })
      // Without an ID, it is unknown whether the grant was lost, or released by this commit.
      if (again.state === 'lost' && commit.record.length === 0) throw error
      if (again.state !== 'repeated') return again
      // IDs are recorded under the locks. Until their deadline this process holds them, so this commit has recorded the
      // ID. After that, another process may have committed the same change, and nothing else of this batch.
      if (!lease.loss && this.#session.clock.now() < deadline) return { state: 'committed', versions: [] }
      throw error
    }
  }
}
