import { createHash } from 'node:crypto'
import type { RecordedId } from '../../engine/contract.js'

/** What a row is of. */
export type Kind = 'lock' | 'value' | 'limit'

/** An entry of an index takes no more bytes than this, with room to spare. */
const MAX_BYTES = 1000

/** The name of the row for a key. A key that is too long for an index is named by its hash. */
export function rowName(kind: Kind, key: string): string {
  if (key.length <= MAX_BYTES / 4 || Buffer.byteLength(key) <= MAX_BYTES) return `${kind}/${key}`
  return `${kind}#${createHash('sha256').update(key).digest('hex')}`
}

/** The key of a row; undefined where its name is a hash. */
export function keyOf(name: string): string | undefined {
  const slash = name.indexOf('/')
  const hash = name.indexOf('#')
  return slash < 0 || (hash >= 0 && hash < slash) ? undefined : name.slice(slash + 1)
}

/** What stands for an id that is recorded with a key. */
export function markOf({ key, id }: RecordedId): string {
  return createHash('sha256').update(`${key}\0${id}`).digest('hex').slice(0, 32)
}
