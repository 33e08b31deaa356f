import { createHash } from 'node:crypto'
import type { RecordedId } from '../../engine/contract.js'
import { requestsIn } from '../../engine/kit/requests-in.js'
import type { Purpose } from '../../engine/kit/state-engine.js'

/** What a row is of. */
export type Kind = 'lock' | 'value' | 'limit'

/** An entry of an index takes no more bytes than this, with room to spare. */
const MOST_BYTES = 1000

/** The name of the row for a key. A key that is too long for an index is named by its hash. */
export function rowName(kind: Kind, key: string): string {
  if (key.length <= MOST_BYTES / 4 || Buffer.byteLength(key) <= MOST_BYTES) return `${kind}/${key}`
  return `${kind}#${createHash('sha256').update(key).digest('hex')}`
}

/** What the names of all rows of locks begin with. */
export const LOCKS: Kind = 'lock'

/** What the names of rows of limiters begin with, except those that are hashed. */
export const LIMITS = 'limit/' satisfies `${Kind}/`

/** What stands for an id that is recorded with a key. */
export function markOf({ key, id }: RecordedId): string {
  return createHash('sha256').update(`${key}\0${id}`).digest('hex').slice(0, 32)
}

/** The rows that an operation certainly needs. */
export function namesFor(purpose: Purpose): string[] {
  const names = requestsIn(purpose).flatMap(({ claims }) => claims.map(({ key }) => rowName('lock', key)))
  const values = (keys: readonly string[]): string[] => keys.map(key => rowName('value', key))
  switch (purpose.type) {
    case 'enqueue':
    case 'poll':
      return [...names, ...values(purpose.read?.keys ?? [])]
    case 'expire':
      return purpose.keys.map(key => rowName('lock', key))
    case 'inspect':
      return purpose.exact ? [rowName('lock', purpose.prefix)] : []
    case 'forceRelease':
      return [rowName('lock', purpose.key)]
    case 'read':
      return values(purpose.keys)
    case 'commit':
      return [...names, ...values([...purpose.expect, ...purpose.writes].map(({ key }) => key))]
    case 'watch':
    case 'unwatch':
      return values([purpose.key])
    default:
      return names
  }
}
