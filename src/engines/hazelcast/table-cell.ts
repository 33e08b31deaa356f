import type { IMap } from 'hazelcast-client'

/** The key of the table's record, in the map of the table. */
export const TABLE_KEY = 'table'

/** The place that the table's record is kept in, which can be changed by compare-and-set. */
export interface TableCell {
  /** Null when there is no record yet. @throws what the client throws */
  get(): Promise<string | null>
  /**
   * Puts a record in the place of another one, or of none.
   * @returns undefined when that can't be told from the answer
   * @throws what the client throws
   */
  replace(before: string | undefined, after: string): Promise<boolean | undefined>
}

/** An entry of a map, whose listeners are told of each change. */
export function mapCell(map: IMap<string, string>): TableCell {
  return {
    get: () => map.get(TABLE_KEY),
    async replace(before, after) {
      if (before !== undefined) return map.replaceIfSame(TABLE_KEY, before, after)
      return (await map.putIfAbsent(TABLE_KEY, after)) === null
    },
  }
}
