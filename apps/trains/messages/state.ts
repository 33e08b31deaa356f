import { emptyLocation, locationKey, type Location, type LocationCounts } from '../domain/location.js'
import { trainKey, type Train } from '../domain/train.js'
import type { Transaction } from './message-type.js'

/** The train as the transaction has it; undefined when there is none of this id. */
export function trainIn(transaction: Transaction, id: string): Train | undefined {
  return transaction.get(trainKey(id)) as Train | undefined
}

/** Adds one to a counter of a location, which starts at zero when it is not known yet. */
export function count(transaction: Transaction, location: string, counter: keyof LocationCounts): void {
  const key = locationKey(location)
  const before = (transaction.get(key) as Location | undefined) ?? emptyLocation(location)
  transaction.put(key, { ...before, [counter]: before[counter] + 1 })
}
