import type { Clock } from '../clock.js'
import { trainOf } from '../domain/train.js'
import type { RunStore } from '../run-store.js'

/** Maximum length of a label, in characters. */
const MAX_LABEL = 200

type Transactions = Pick<RunStore, 'transaction'>

/**
 * Returns a store for a run with a viewer. Each transaction has its train in the label of its locks, and keeps the
 * locks for a while.
 * @param label of the worker.
 * @param dwell returns the time to keep the locks, in milliseconds.
 */
export function slowedStore(
  store: Transactions,
  label: string,
  dwell: () => number,
  clock: Clock,
): Transactions {
  return {
    transaction: (keys, change, options) =>
      store.transaction(
        keys,
        async transaction => {
          await clock.sleep(dwell())
          return change(transaction)
        },
        { ...options, label: `${label}: ${trainOf(options.id[0]!.key)}`.slice(0, MAX_LABEL) },
      ),
  }
}
