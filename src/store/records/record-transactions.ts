import type { CommitOutcome, ReadOutcome, ReadSet, Versioned, Write } from '../../engine/contract.js'
import type { HeldCommit } from '../values.js'
import { CommitAttempt, type Reading } from './commit-attempt.js'
import { changed, nextVersion, versioned } from './key-record.js'
import { writeAlone } from './lone-write.js'
import type { Records } from './records.js'
import { Settler, type Looker } from './settler.js'
import { EncodedRecords, type Sighting } from './encoded-records.js'

/** The environment of the protocol, which tests can replace. */
export interface Surroundings {
  /** The wall clock, in milliseconds. */
  readonly now: () => number
  /** Returns a string that no attempt ever had. */
  readonly newAttempt: () => string
}

/**
 * Values, and transactions on several of them, in a store that has only compare-and-set on single keys.
 *
 * A transaction on several keys is kept in the record of its first key. It is first written there as pending. Then
 * every other key is stamped with a pointer to it, each by compare-and-set against the record that was read. One
 * compare-and-set of the first record commits it, with all new values. These are then applied to the other records, and
 * the first record is cleared last. A process that finds a stamp settles its transaction first.
 */
export class RecordTransactions {
  readonly #records: EncodedRecords
  readonly #settler: Settler
  readonly #newAttempt: () => string

  constructor(records: Records, { now, newAttempt }: Surroundings) {
    this.#records = new EncodedRecords(records, now)
    this.#settler = new Settler(this.#records)
    this.#newAttempt = newAttempt
  }

  /** Reads without locks. @throws UnavailableError */
  async read(what: ReadSet): Promise<ReadOutcome> {
    const reading = await this.hold(what, 'reader')
    return (reading as Reading).outcome
  }

  /**
   * Reads under the locks of the keys. Returns `lost` if a later holder has written.
   * @throws UnavailableError
   */
  async hold({ keys, ids }: ReadSet, looker: Looker): Promise<Reading | 'lost'> {
    const all = [...new Set([...keys, ...ids.map(({ key }) => key)])]
    const found = await Promise.all(all.map(key => this.#settler.settled(key, looker)))
    const sightings = new Map<string, Sighting>()
    for (const [index, sighting] of found.entries()) {
      if (sighting === 'lost') return 'lost'
      sightings.set(all[index]!, sighting)
    }
    const now = this.#records.now()
    const values: Versioned[] = keys.map(key => versioned(sightings.get(key)!.record))
    const seen = ids.map(({ key, id }) => (sightings.get(key)!.record.ids.get(id) ?? 0) > now)
    return { sightings, outcome: { values, seen } }
  }

  /**
   * Writes one value without its lock; with a version, only if the key has that version.
   * @throws UnavailableError, IndeterminateError
   */
  async write(write: Write, version: number | undefined, retention: number): Promise<CommitOutcome> {
    const { key, value } = write
    const attempt = this.#newAttempt()
    for (;;) {
      const seen = (await this.#settler.settled(key, 'writer')) as Sighting
      const before = versioned(seen.record)
      if (version !== undefined && version !== before.version)
        return { state: 'conflict', key, found: before }
      if (value === undefined && before.value === undefined) return { state: 'committed', versions: [0] }
      const now = this.#records.now()
      const next = nextVersion(seen.record, now)
      const change = { write: { value, version: next }, ids: new Map<string, number>() }
      const after = changed(seen.record, change, 0n, now + retention, now)
      if (await writeAlone(this.#records, key, seen, after, attempt))
        return { state: 'committed', versions: [value === undefined ? 0 : next] }
    }
  }

  /**
   * Commits all changes to the records that `hold` has read, or none.
   * @param assertHeld throws when the locks are lost; called right before the deciding write.
   * @throws UnavailableError when certainly nothing was committed, IndeterminateError, what `assertHeld` throws
   */
  async commit(
    reading: Reading,
    commit: HeldCommit,
    token: bigint,
    assertHeld: () => void,
  ): Promise<CommitOutcome> {
    const { expect, writes, record } = commit
    // mutant: ignore-read-keys
    const keys = expect.map(({ key }) => key)
    if (writes.length === 0 && record.length === 0) return this.#verify(keys, reading, token)
    const attempt = new CommitAttempt({
      encoded: this.#records,
      settler: this.#settler,
      name: this.#newAttempt(),
      reading,
      commit,
      token,
      assertHeld,
    })
    return keys.length === 1 ? attempt.alone(keys[0]!) : attempt.together(keys[0]!, keys.slice(1))
  }

  /** Whether no record has changed since it was read. Then all of them existed at the same time. */
  async #verify(keys: readonly string[], reading: Reading, token: bigint): Promise<CommitOutcome> {
    const looks = await Promise.all(
      keys.map(key => this.#settler.again(key, reading.sightings.get(key)!, token)),
    )
    return looks.find(look => 'state' in look) ?? { state: 'committed', versions: [] }
  }
}
