import { createHash } from 'node:crypto'
import type { RecordedId } from '../../engine/contract.js'

/** The kind of state in a row. */
export type Kind = 'lock' | 'value' | 'limit'

/** Maximum size of a name in an index entry, in bytes, with room to spare. */
const MAX_BYTES = 1000

/** Returns the name of the row for a key. A key that is too long for an index is replaced by its hash. */
export function rowName(kind: Kind, key: string): string {
  if (key.length <= MAX_BYTES / 4 || Buffer.byteLength(key) <= MAX_BYTES) return `${kind}/${key}`
  return `${kind}#${createHash('sha256').update(key).digest('hex')}`
}

/** Returns the key of a row; undefined if the name has only its hash. */
export function keyOf(name: string): string | undefined {
  const slash = name.indexOf('/')
  const hash = name.indexOf('#')
  return slash < 0 || (hash >= 0 && hash < slash) ? undefined : name.slice(slash + 1)
}

/** Returns the hash under which a recorded ID is stored. */
export function markOf({ key, id }: RecordedId): string {
  return createHash('sha256').update(`${key}\0${id}`).digest('hex').slice(0, 32)
}
