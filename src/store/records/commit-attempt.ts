import type { CommitOutcome, ReadOutcome } from '../../engine/contract.js'
import type { HeldCommit } from '../values.js'
import {
  changed,
  isDecided,
  nextVersion,
  stamped,
  type Change,
  type KeyRecord,
  type Pointer,
  type Primary,
  type Stamp,
} from './key-record.js'
import { indeterminate, notApplied, writeAlone } from './lone-write.js'
import { transactionIn, type Settler } from './settler.js'
import type { EncodedRecords, Sighting } from './encoded-records.js'

/** The records that a holder has read: as the store returned them, and as its transactions use them. */
export interface Reading {
  readonly sightings: ReadonlyMap<string, Sighting>
  readonly outcome: ReadOutcome
}

export interface AttemptParts {
  readonly encoded: EncodedRecords
  readonly settler: Settler
  /** Unique among all attempts. */
  readonly name: string
  readonly reading: Reading
  readonly commit: HeldCommit
  readonly token: bigint
  readonly assertHeld: () => void
}

/** One attempt to commit the changes to the records that were read. */
export class CommitAttempt {
  readonly #parts: AttemptParts
  /** Until when its records of absent keys are kept: a wall-clock time. */
  readonly #until: number

  constructor(parts: AttemptParts) {
    this.#parts = parts
    this.#until = parts.encoded.now() + parts.commit.retention
  }

  /** Commits to a single key, by one compare-and-set. */
  async alone(key: string): Promise<CommitOutcome> {
    const { encoded, settler, name, token, assertHeld } = this.#parts
    let seen = this.#seen(key)
    for (;;) {
      assertHeld()
      if (await writeAlone(encoded, key, seen, this.#after(key, seen.record), name)) return COMMITTED
      const again = await settler.again(key, seen, token)
      if ('state' in again) return again
      seen = again
    }
  }

  /** Commits to several keys, of which the first carries the transaction. */
  async together(first: string, others: readonly string[]): Promise<CommitOutcome> {
    const { settler, token, assertHeld, name: attempt } = this.#parts
    const common = { attempt, token, until: this.#until }
    const pending: Primary = { ...common, state: 'pending', others, changes: new Map() }
    const pointer: Pointer = { ...common, state: 'pointer', primary: first }
    const begun = await this.#stamp(first, pending)
    if ('state' in begun) return begun
    const known = new Map<string, Sighting>()
    const stamps = await Promise.allSettled(
      others.map(async key => {
        const stamp = await this.#stamp(key, pointer)
        if ('state' in stamp) return stamp
        known.set(key, stamp)
        return undefined
      }),
    )
    const refused = stamps.find(stamp => stamp.status === 'fulfilled' && stamp.value !== undefined)
    const failed = stamps.find(stamp => stamp.status === 'rejected')
    try {
      if (failed) throw failed.reason
      if (!refused) assertHeld()
    } catch (error) {
      await this.#abort(first, begun, pending)
      throw error
    }
    if (refused) {
      await this.#abort(first, begun, pending)
      return (refused as PromiseFulfilledResult<CommitOutcome>).value
    }
    const changes = new Map(others.map(key => [key, this.#change(key, known.get(key)!.record)]))
    const committed: Primary = { ...pending, state: 'committed', changes }
    const decision = await this.#decide(first, begun, committed)
    // mutant: commit-aborted
    if (decision === 'aborted') return this.#whyAborted([first, ...others])
    // The attempt is committed. If a step fails from here on, the next process completes it.
    await settler.finish(first, decision, committed, known).catch(() => undefined)
    return COMMITTED
  }

  /** Stamps a key; returns the outcome if the key has changed since it was read. */
  async #stamp(key: string, stamp: Stamp): Promise<Sighting | CommitOutcome> {
    const { encoded, settler, token, name } = this.#parts
    let seen = this.#seen(key)
    for (;;) {
      const swap = await encoded.swap(key, seen, stamped(seen.record, stamp))
      // mutant: stamp-over-change
      if (swap.state === 'written') return swap.now
      const found = await encoded.find(key)
      const own = found.record.stamp?.attempt === name ? found.record.stamp.state : undefined
      if (own === stamp.state) return found
      // Written without an answer, and then aborted by another process.
      if (own !== undefined || isDecided(found.record, name, false)) return this.#whyAborted([key])
      if (swap.state === 'unknown') throw notApplied(key, swap.cause)
      const again = await settler.again(key, seen, token)
      if ('state' in again) return again
      seen = again
    }
  }

  /** Commits by writing the record of the first key, and returns that record. */
  async #decide(first: string, begun: Sighting, committed: Primary): Promise<Sighting | 'aborted'> {
    const { encoded, name } = this.#parts
    const swap = await encoded.swap(first, begun, stamped(this.#after(first, begun.record), committed))
    if (swap.state === 'written') return swap.now
    const cause = swap.state === 'unknown' ? swap.cause : 'it was refused'
    for (;;) {
      const now = await encoded.find(first).catch((error: unknown) => {
        throw indeterminate(first, error)
      })
      const found = transactionIn(now.record, name)
      if (found?.state === 'committed') return now
      if (isDecided(now.record, name, true)) return now
      if (found?.state === 'aborted' || isDecided(now.record, name, false)) {
        await this.#cleanUp(first, now, committed)
        return 'aborted'
      }
      // Others have settled it, and so many decisions followed that the record has dropped its outcome.
      if (!found) throw indeterminate(first, cause)
      // It is still pending. Once it is aborted, a write that is on its way can't take effect.
      const aborted = await this.#markAborted(first, now, found)
      if (aborted === 'unknown') throw indeterminate(first, cause)
      if (aborted === 'refused') continue
      await this.#cleanUp(first, aborted, found)
      throw notApplied(first, cause)
    }
  }

  /** Removes the stamps. If that fails for one, the next process removes it. */
  async #abort(first: string, begun: Sighting, pending: Primary): Promise<void> {
    const aborted = await this.#markAborted(first, begun, pending)
    if (aborted !== 'unknown') await this.#cleanUp(first, aborted === 'refused' ? begun : aborted, pending)
  }

  async #markAborted(
    first: string,
    seen: Sighting,
    transaction: Primary,
  ): Promise<Sighting | 'unknown' | 'refused'> {
    const after = stamped(seen.record, { ...transaction, state: 'aborted' })
    const swap = await this.#parts.encoded.swap(first, seen, after)
    return swap.state === 'written' ? swap.now : swap.state
  }

  /** Also called when another process has aborted it, because stamps may have been set since. */
  async #cleanUp(first: string, aborted: Sighting, transaction: Primary): Promise<void> {
    const { settler } = this.#parts
    await settler.finish(first, aborted, { ...transaction, state: 'aborted' }).catch(() => undefined)
  }

  /** Why another process has aborted it. */
  async #whyAborted(keys: readonly string[]): Promise<CommitOutcome> {
    const { settler, token } = this.#parts
    for (const key of keys) {
      const again = await settler.again(key, this.#seen(key), token)
      if ('state' in again) return again
    }
    return { state: 'lost' }
  }

  #seen(key: string): Sighting {
    return this.#parts.reading.sightings.get(key)!
  }

  #after(key: string, record: KeyRecord): KeyRecord {
    const { encoded, token } = this.#parts
    return changed(record, this.#change(key, record), token, this.#until, encoded.now())
  }

  #change(key: string, record: KeyRecord): Change {
    const { encoded, commit } = this.#parts
    const write = commit.writes.find(one => one.key === key)
    const ids = commit.record.filter(one => one.key === key).map(({ id }) => [id, this.#until] as const)
    return {
      write: write && { value: write.value, version: nextVersion(record, encoded.now()) },
      ids: new Map(ids),
    }
  }
}

const COMMITTED: CommitOutcome = { state: 'committed', versions: [] }
