import { randomBytes } from 'node:crypto'
import type { CommitOutcome, ReadOutcome, ReadSet, Write } from '../../engine/contract.js'
import { WriteQueue } from '../../base/write-queue.js'
import { InvalidArgumentError, LostError } from '../../base/errors.js'
import type { AcquireTerms } from '../../core/lock-options.js'
import type { LocalQueue } from '../../core/local-queue.js'
import type { Session } from '../../core/session.js'
import type { HeldValues, Values } from '../values.js'
import { RecordTransactions } from './record-transactions.js'
import type { Records } from './records.js'

/**
 * The single writes of this process, by their records. If they ran at the same time, they would conflict so often that
 * a conflict could not be distinguished from a lost answer.
 */
const queues = new WeakMap<Records, WriteQueue>()

/** Values in the caller's records, under locks of the box. */
export class RecordValues implements Values {
  /** A commit stamps all keys that it checks, and stamps without the lock would block its holder. */
  readonly checksOnlyLocked = true
  readonly join = false
  readonly #session: Session
  readonly #transactions: RecordTransactions
  readonly #writes: WriteQueue

  constructor(session: Session, records: Records) {
    this.#session = session
    this.#writes = queues.get(records) ?? new WriteQueue()
    queues.set(records, this.#writes)
    this.#transactions = new RecordTransactions(records, {
      now: Date.now,
      newAttempt: () => randomBytes(9).toString('base64url'),
    })
  }

  async read(what: ReadSet): Promise<ReadOutcome> {
    this.#assertOpen()
    return this.#transactions.read(what)
  }

  async list(): Promise<never> {
    throw new InvalidArgumentError(
      "can't list a store with records: list the keys in the store that has them",
    )
  }

  async write(write: Write, version: number | undefined, retention: number): Promise<CommitOutcome> {
    this.#assertOpen()
    const execute = (): Promise<CommitOutcome> => this.#transactions.write(write, version, retention)
    return version === undefined ? this.#writes.run(write.key, execute) : execute()
  }

  async hold(queue: LocalQueue, request: AcquireTerms, what: ReadSet): Promise<HeldValues> {
    const grant = await this.#session.acquire(queue, request)
    const release = (): Promise<void> => grant.release().catch(() => undefined)
    try {
      const reading = await this.#transactions.hold(what, grant.token)
      if (reading === 'lost') {
        throw new LostError(
          `${queue.set.title} already had a later holder than token ${grant.token}`,
          queue.errors.context,
        )
      }
      return {
        grant,
        read: reading.outcome,
        commit: async commit => {
          const outcome = await this.#transactions.commit(reading, commit, grant.token, () =>
            grant.assertHeld(),
          )
          // It is committed, even if the locks were lost since.
          if (outcome.state === 'committed') await release()
          return outcome
        },
      }
    } catch (error) {
      await release()
      throw error
    }
  }

  async watch(key: string): Promise<never> {
    throw new InvalidArgumentError(
      `can't watch ${key}: records do not report changes; use a store in the engine`,
      { key },
    )
  }

  #assertOpen(): void {
    if (this.#session.ending) throw this.#session.ending
  }
}
