import { emptyLocation, locationKey, type Location, type LocationCounts } from '../domain/location.js'
import { trainKey, type Train } from '../domain/train.js'
import type { Transaction } from './message-type.js'

export function trainIn(transaction: Transaction, id: string): Train | undefined {
  return transaction.get(trainKey(id)) as Train | undefined
}

/** Increments a counter of a location. Counters of a new location are zero. */
export function count(transaction: Transaction, location: string, counter: keyof LocationCounts): void {
  const key = locationKey(location)
  const before = (transaction.get(key) as Location | undefined) ?? emptyLocation(location)
  transaction.put(key, { ...before, [counter]: before[counter] + 1 })
}
