import { decodeKeyEntry } from '../../../packages/hazelcast/src/entry-text.js'
import type { KeyEntry } from '../../../packages/hazelcast/src/key-entry.js'
import type { Scan } from '../../../packages/hazelcast/src/scan.js'

/**
 * Searches entries in memory as the members do.
 * @param before called first and awaited
 */
export function searchIn(
  texts: ReadonlyMap<string, string>,
  before: () => Promise<unknown> = () => Promise.resolve(),
): Pick<Scan, 'inUse' | 'list' | 'unused' | 'usedBy'> {
  const find = async (isFound: (entry: KeyEntry) => boolean): Promise<string[]> => {
    await before()
    return [...texts].flatMap(([key, text]) =>
      !key.startsWith('room ') && isFound(decodeKeyEntry(key, text)) ? [key] : [],
    )
  }
  return {
    inUse: () => find(({ locks }) => locks.requests.length + locks.decided.length > 0),
    list: () => find(({ value }) => value !== undefined),
    usedBy: sessions =>
      find(
        ({ locks }) =>
          locks.requests.some(each => sessions.includes(each.session)) || locks.decided.length > 0,
      ),
    unused: time =>
      find(({ stamp, value, ids, locks }) => {
        const isRecent = (at: number): boolean => Math.abs(at / 1000 - Date.now()) <= time
        const isUsed = value !== undefined || locks.requests.length + locks.decided.length > 0
        return (
          !isUsed && ![stamp, locks.turn, locks.number].some(isRecent) && !((ids[0]?.[1] ?? 0) >= Date.now())
        )
      }),
  }
}
