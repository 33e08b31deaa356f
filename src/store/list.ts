import type { Session } from '../core/session.js'
import type { Versioned } from '../engine/contract.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkKey, checkOptions, isKey } from '../base/options.js'
import { isReserved } from '../base/reserved-keys.js'
import { runtimeTimers } from '../base/runtime-timers.js'
import { decode, type StoreEntry } from './value.js'
import type { Values } from './values.js'

/** Options of {@link Store.list}. */
export interface ListOptions {
  /** Only keys that begin with this; default all. */
  prefix?: string | undefined
  /** Only keys that come after this one, which need not exist; default all. */
  after?: string | undefined
  /** Maximum number of entries; default all. */
  limit?: number | undefined
}

/** An entry of {@link Store.list}. */
export interface ListedEntry<T = unknown> extends StoreEntry<T> {
  readonly key: string
  /**
   * When the value was written, by the clock of the engine; undefined in memory and in files, which do not record it.
   */
  readonly changed: Date | undefined
}

/** Minimum number of keys that the first search asks for. */
const MIN_KEYS = 256
/** Maximum number of keys that a search asks for. */
const MAX_KEYS = 10_000
/** Number of values that are read at once: at first, and at most. */
const FIRST_READ = 16
const MAX_READ = 256
/** Number of characters of values that are read at once, if they are as long as those before them. */
const READ_LENGTH = 1 << 20
/** Maximum growth of the number of keys or values from one request to the next. */
const GROWTH = 4

interface Checked {
  readonly prefix: string
  readonly after: string
  readonly limit: number
}

export function checkList(options: ListOptions): Checked {
  checkOptions(options, ['prefix', 'after', 'limit'], `{ prefix: 'a' }`)
  const { prefix = '', after = '', limit = Infinity } = options
  if (prefix !== '') checkKey('prefix', prefix)
  if (after !== '') checkKey('after', after)
  if (limit !== Infinity && (!Number.isSafeInteger(limit) || limit < 1))
    throw new InvalidArgumentError(`limit must be a whole number of 1 or more, not ${shown(limit)}`)
  return { prefix, after, limit }
}

/** Yields entries of a store. @param start what the full keys of the store begin with */
export async function* list<T>(
  values: Values,
  start: string,
  { prefix, after, limit }: Checked,
): AsyncGenerator<ListedEntry<T>, void, void> {
  let left = limit
  let last = after === '' ? '' : start + after
  let size = FIRST_READ
  // Some keys may have no values any more.
  let wanted = Math.min(MAX_KEYS, Math.max(MIN_KEYS, limit))
  for (;;) {
    const found = await values.list({ prefix: start + prefix, after: last, limit: wanted })
    // Other programs may have written under names that no store uses, and that can't be passed as `after`.
    const keys = found.filter(key => key.length > start.length && isKey(key))
    for (let at = 0; at < keys.length;) {
      const some = keys.slice(at, at + Math.min(size, left))
      // Some engines do all of it in this process, which has leases to renew.
      await new Promise(runtimeTimers.setImmediate)
      let entries: readonly Versioned[]
      try {
        entries = (await values.read({ keys: some, ids: [] })).values
      } catch (error) {
        // Another one may be damaged, or all together too long.
        if (some.length === 1) throw error
        size = 1
        continue
      }
      at += some.length
      let length = 1
      for (const [index, key] of some.entries()) {
        const { value, version, changed } = entries[index]!
        if (value === undefined) continue
        length += value.length
        yield {
          key: key.slice(start.length),
          value: decode(key, value, version) as T,
          version,
          changed: changed === undefined ? undefined : new Date(changed),
        }
        left--
      }
      if (left === 0) return
      const fitting = Math.floor((READ_LENGTH * some.length) / length)
      size = Math.min(MAX_READ, GROWTH * size, Math.max(1, fitting))
    }
    if (found.length < wanted) return
    last = found.at(-1)!
    wanted = Math.min(MAX_KEYS, GROWTH * wanted)
  }
}

const AFTER_NAME = '0'

/** Yields the names of stores that have keys, in the order of the engine. */
export async function* storeNames(session: Session): AsyncGenerator<string, void, void> {
  let after = ''
  for (;;) {
    const found = await session.submit({ type: 'list', prefix: '', after, limit: MAX_KEYS })
    let last: string | undefined
    for (const key of found) {
      const name = storeOf(key)
      if (name === last) continue
      last = name
      if (name !== undefined && isKey(name) && !isReserved(name)) yield name
    }
    if (found.length < MAX_KEYS) return
    // The keys of a store follow each other, so the rest of them can be passed over.
    after = last === undefined ? found.at(-1)! : last + AFTER_NAME
  }
}

/** Returns the store of a key; undefined if another program has written it. */
function storeOf(key: string): string | undefined {
  const end = key.indexOf('/')
  return end < 0 ? undefined : key.slice(0, end)
}
