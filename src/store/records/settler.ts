import type { CommitOutcome } from '../../engine/contract.js'
import { UnavailableError } from '../../base/errors.js'
import {
  changed,
  decidedIn,
  stamped,
  unstamped,
  versioned,
  type KeyRecord,
  type Primary,
} from './key-record.js'
import { messageOf, type EncodedRecords, type Sighting } from './encoded-records.js'

/**
 * The kind of caller that reads a record. It decides the outcome of a pending transaction. A reader ignores it, and
 * sees the state before it. A writer aborts it. A holder, identified by its token, aborts it if its token is smaller.
 */
export type Looker = 'reader' | 'writer' | bigint

/** Reads records, and first settles any transaction that another process left in them. */
export class Settler {
  readonly #records: EncodedRecords

  constructor(encoded: EncodedRecords) {
    this.#records = encoded
  }

  /**
   * Returns the record of a key after its transaction has been settled; `lost` if a holder with a larger token has
   * written.
   * @throws UnavailableError
   */
  async settled(key: string, looker: Looker): Promise<Sighting | 'lost'> {
    for (;;) {
      const seen = await this.#records.find(key)
      const { stamp, token } = seen.record
      // mutant: ignore-larger-token
      if (typeof looker === 'bigint' && (token > looker || (stamp && stamp.token > looker))) return 'lost'
      if (!stamp) return seen
      const at = stamp.state === 'pointer' ? stamp.primary : key
      const primary = stamp.state === 'pointer' ? await this.#records.find(at) : seen
      const transaction = transactionIn(primary.record, stamp.attempt)
      // The first key is cleared last, so the stamp of a transaction that is gone was left behind, or arrived late.
      if (!transaction) await this.#write(key, seen, withoutStamp(seen.record, stamp.attempt))
      else if (transaction.state !== 'pending') await this.finish(at, primary, transaction)
      // mutant: holder-ignores-pending
      else if (looker === 'reader') return { ...seen, record: unstamped(seen.record) }
      else await this.#write(at, primary, stamped(primary.record, { ...transaction, state: 'aborted' }))
    }
  }

  /** Returns the current state of a key for a holder that wants to overwrite the state it has read; or why it can't. */
  async again(key: string, seen: Sighting, token: bigint): Promise<Sighting | CommitOutcome> {
    const now = await this.settled(key, token)
    if (now === 'lost') return { state: 'lost' }
    // mutant: overwrite-newer
    if (now.record.version === seen.record.version) return now
    return { state: 'conflict', key, found: versioned(now.record) }
  }

  /**
   * Applies a committed transaction to its other keys, or removes the stamps of an aborted one, and then clears its
   * first key.
   * @param known the other keys as they were stamped, if known.
   * @throws UnavailableError when a part is left to the next process
   */
  async finish(
    at: string,
    primary: Sighting,
    transaction: Primary,
    known?: ReadonlyMap<string, Sighting>,
  ): Promise<void> {
    const { attempt, state } = transaction
    // mutant: write-first-key-only
    const others = transaction.others.map(key => this.#finishOther(key, transaction, known?.get(key)))
    // If one fails, the first key stays for the next process, and the others are still settled.
    const failed = (await Promise.allSettled(others)).find(outcome => outcome.status === 'rejected')
    if (failed) throw failed.reason
    // A process that settles its own transaction may find that another process has done it.
    if (!transactionIn(primary.record, attempt)) return
    await this.#write(at, primary, decidedIn(unstamped(primary.record), attempt, state === 'committed'))
  }

  async #finishOther(key: string, transaction: Primary, known: Sighting | undefined): Promise<void> {
    const { attempt, token, until, state, changes } = transaction
    let seen = known
    for (;;) {
      seen ??= await this.#records.find(key)
      if (seen.record.stamp?.attempt !== attempt) return
      // mutant: roll-back-committed
      const after =
        state === 'committed'
          ? changed(unstamped(seen.record), changes.get(key)!, token, until, this.#records.now())
          : withoutStamp(seen.record, attempt)
      if (await this.#write(key, seen, after)) return
      seen = undefined
    }
  }

  /** @throws UnavailableError when there was no reply. */
  async #write(key: string, seen: Sighting, record: KeyRecord): Promise<boolean> {
    const swap = await this.#records.swap(key, seen, record)
    if (swap.state !== 'unknown') return swap.state === 'written'
    const { cause } = swap
    throw new UnavailableError(`can't settle an unfinished transaction at ${key}: ${messageOf(cause)}`, {
      key,
      cause,
    })
  }
}

/**
 * Removes an aborted transaction from a record, but keeps its outcome, so that the record is never as it was before.
 */
function withoutStamp(record: KeyRecord, attempt: string): KeyRecord {
  return decidedIn(unstamped(record), attempt, false)
}

/** The transaction of this attempt, if the record is that of its first key. */
export function transactionIn({ stamp }: KeyRecord, attempt: string): Primary | undefined {
  return stamp?.attempt === attempt && stamp.state !== 'pointer' ? stamp : undefined
}
