import { IndeterminateError, UnavailableError } from '../../base/errors.js'
import { canHaveForgotten, decidedIn, isDecided, type KeyRecord } from './key-record.js'
import { messageOf, type EncodedRecords, type Sighting } from './encoded-records.js'

/**
 * Writes a record by one compare-and-set that decides an attempt. Returns false if another client has written the key.
 * @throws UnavailableError when it was not written and never will be, IndeterminateError
 */
export async function writeAlone(
  encoded: EncodedRecords,
  key: string,
  seen: Sighting,
  record: KeyRecord,
  attempt: string,
): Promise<boolean> {
  const swap = await encoded.swap(key, seen, decidedIn(record, attempt, true))
  if (swap.state === 'written') return true
  const cause = swap.state === 'unknown' ? swap.cause : 'it was refused'
  for (;;) {
    // A client that retries after a lost connection can be refused because of its own write.
    const now = await encoded.find(key).catch((error: unknown) => {
      throw indeterminate(key, error)
    })
    // mutant: believe-repeated-refusal
    if (isDecided(now.record, attempt, true)) return true
    if (canHaveForgotten(seen.record, now.record)) throw indeterminate(key, cause)
    if (swap.state === 'refused') return false
    // A record never returns to an earlier state, so a write that is on its way has no effect on a changed one.
    if (now.record.stamp) throw notApplied(key, cause)
    // mutant: lost-answer-as-refusal
    const marked = await encoded.swap(key, now, decidedIn(now.record, attempt, false))
    if (marked.state === 'unknown') throw indeterminate(key, cause)
    if (marked.state === 'written') throw notApplied(key, cause)
  }
}

/** The answer to the deciding write was lost. */
export function indeterminate(key: string, cause: unknown): IndeterminateError {
  return new IndeterminateError(`the reply to a write of ${key} was lost: ${messageOf(cause)}`, {
    key,
    cause,
  })
}

/** An answer was lost, but nothing was written. */
export function notApplied(key: string, cause: unknown): UnavailableError {
  return new UnavailableError(`nothing was written to ${key}: ${messageOf(cause)}`, { key, cause })
}
