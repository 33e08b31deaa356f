import { MAX_KEY_LENGTH } from '../base/options.js'
import { notSupported } from './lock-request.js'

/** Prefix of the keys of these locks. */
export const PREFIX = 'web-lock:'

/**
 * Characters that a name may have, but not a key: NUL and halves of surrogate pairs. Also the sign that escapes them.
 */
const UNFIT = /[%\0]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/** Returns the key of the lock with this name. @throws DOMException when it would be too long */
export function keyOf(name: string): string {
  const key = PREFIX + name.replace(UNFIT, unit => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  if (key.length > MAX_KEY_LENGTH)
    throw notSupported(
      `the name of a lock must fit into a key of ${MAX_KEY_LENGTH} characters, not ${key.length}`,
    )
  return key
}

/** Returns the name of the lock with this key. */
export function nameOf(key: string): string {
  return key
    .slice(PREFIX.length)
    .replace(/%([\da-f]{4})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}
