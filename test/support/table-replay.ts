import { inLanes } from './lanes.js'
import { storedIn, type StoredTable, type TableOperation } from './stored-table.js'
import { NOW, type Transition } from './table-search.js'
import { isAlone, World, type Differences, type TablePort } from './table-world.js'

/**
 * Lets a port decide the operations of a search, each on its state in the search.
 * @returns the number of operations that it has decided
 * @throws Error with an operation that it decides differently
 */
export async function replay(
  portFor: (place: number) => TablePort,
  transitions: readonly Transition[],
): Promise<number> {
  let replayed = 0
  await inLanes(0, transitions.length, async place => {
    const { table, session, operation } = transitions[place]!
    const state = table()
    const port = portFor(place)
    const before = JSON.stringify([...state.requests()])
    try {
      if (!isComparable(operation, storedIn(state), port.differences)) return
      const world = await World.of(port, state, NOW)
      await world.decide(session, operation)
      replayed++
    } catch (error) {
      const { message } = error as Error
      throw new Error(`${JSON.stringify(operation)} on ${before}: ${message}`, { cause: error })
    } finally {
      port.end?.()
    }
  })
  return replayed
}

/** Whether a port decides an operation as the lock table does. */
function isComparable(operation: TableOperation, table: StoredTable, differences: Differences): boolean {
  const requests = [...table.requests.values()]
  // Nothing is left of an uncontended grant that has expired, so its request can come again.
  const again =
    operation.type === 'enqueue'
      ? operation.request.id
      : operation.type === 'extendOrYield'
        ? operation.next.id
        : ''
  if (differences.keepsUncontendedAsKeys && isExpiredAlone(again, table)) return false
  switch (operation.type) {
    case 'revoke':
      return differences.canRevoke === true
    case 'forceRelease':
      // An operator looks a grant up first, and finds none that has expired.
      return requests.every(({ phase, expires }) => phase !== 'held' || NOW < expires)
    case 'enqueue':
      if (!operation.steal) return true
      // A steal from an uncontended grant frees only the stolen keys.
      return (
        differences.canSteal === true &&
        requests.every(({ id, claims }) => claims.length === 1 || !isAlone(id, table))
      )
    default:
      return true
  }
}

function isExpiredAlone(id: string, table: StoredTable): boolean {
  const request = table.requests.get(id)
  return request !== undefined && request.expires <= NOW && isAlone(id, table)
}
