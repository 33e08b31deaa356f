import type { Versioned } from '../engine/contract.js'
import { InvalidArgumentError, shown, UnavailableError } from '../errors.js'
import { checkKey, checkOptions } from '../options.js'
import type { StoreEntry } from './store-entry.js'
import { decode } from './value.js'
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

/** How many keys are listed at once. */
const MIN_KEYS = 256
const MAX_KEYS = 10_000
/** How many values are read at once at first, and at most. */
const FIRST_READ = 16
const MAX_READ = 256
/** How many characters of values are read at once, if they are as long as those before them. */
const READ_LENGTH = 1 << 20

/** Options of a listing, checked. */
interface Checked {
  readonly prefix: string
  readonly after: string
  readonly limit: number
}

/** @throws InvalidArgumentError */
export function checkList(options: ListOptions): Checked {
  checkOptions(options, ['prefix', 'after', 'limit'])
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
  for (;;) {
    // Some keys may have no values any more.
    const wanted = Math.min(MAX_KEYS, Math.max(MIN_KEYS, left))
    const keys = await values.list({ prefix: start + prefix, after: last, limit: wanted })
    for (let at = 0; at < keys.length;) {
      const some = keys.slice(at, at + Math.min(size, left))
      at += some.length
      let length = 1
      for await (const [key, { value, version, changed }] of readAll(values, some)) {
        if (value === undefined) continue
        length += value.length
        yield {
          key: key.slice(start.length),
          value: decode(key, value) as T,
          version,
          changed: changed === undefined ? undefined : new Date(changed),
        }
        left--
      }
      if (left === 0) return
      size = Math.min(MAX_READ, Math.max(1, Math.floor((READ_LENGTH * some.length) / length)))
    }
    if (keys.length < wanted) return
    last = keys.at(-1)!
  }
}

/** Reads values. If one is damaged, those before it are read alone, and then it is the one that fails. */
async function* readAll(
  values: Values,
  keys: readonly string[],
): AsyncGenerator<readonly [key: string, found: Versioned], void, void> {
  const read = async (wanted: readonly string[]): Promise<readonly Versioned[]> =>
    (await values.read({ keys: wanted, ids: [] })).values
  let all: readonly Versioned[] | undefined
  try {
    all = await read(keys)
  } catch (error) {
    if (!(error instanceof UnavailableError) || keys.length === 1) throw error
  }
  for (const [index, key] of keys.entries()) yield [key, all ? all[index]! : (await read([key]))[0]!]
}
