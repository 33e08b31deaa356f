import { UnavailableError, type Box, type Store } from 'signalbox'
import { failureText } from 'signalbox/reports'
import type { StoreNames, ValuePage, ValueRow, ValueView } from './messages.js'

/** Number of values in a page. */
const PAGE = 100
/** Maximum number of stores that are listed. Each large one costs a search. */
const MAX_STORES = 30
/** Maximum number of characters of a value's JSON: in a list, and in the view of one value. */
const ROW_LENGTH = 160
const VIEW_LENGTH = 100_000

/** The range of values to list. Texts may be empty. */
interface Wanted {
  readonly prefix: string
  readonly after: string
}

/** Lists the stores. */
export async function storeNames(box: Box): Promise<StoreNames> {
  const names: string[] = []
  for await (const name of box.stores()) {
    if (names.length === MAX_STORES) return { names, hasMore: true }
    names.push(name)
  }
  return { names, hasMore: false }
}

/**
 * Lists a page of values. A damaged one is a row of its own, without a value.
 * @param name of the store
 */
export async function valuePage(store: Store, name: string, { prefix, after }: Wanted): Promise<ValuePage> {
  const rows: ValueRow[] = []
  // One more row shows whether there is a next page.
  while (rows.length <= PAGE) {
    const page = { prefix, after: rows.at(-1)?.key ?? after, limit: PAGE + 1 - rows.length }
    try {
      for await (const { key, value, version, changed } of store.list(page)) {
        const json = JSON.stringify(value)
        rows.push({
          key,
          version,
          json: json.slice(0, ROW_LENGTH),
          length: json.length,
          changed: changed?.getTime(),
        })
      }
      break
    } catch (error) {
      if (!(error instanceof UnavailableError) || !error.key?.startsWith(`${name}/`)) throw error
      rows.push({ key: error.key.slice(name.length + 1), failure: failureText(error) })
    }
  }
  return { rows: rows.slice(0, PAGE), hasMore: rows.length > PAGE }
}

/** Reads one value. */
export async function valueView(store: Store, key: string): Promise<ValueView> {
  const entry = await store.get(key)
  if (!entry) return { found: false }
  const json = JSON.stringify(entry.value, null, 2)
  return { found: true, version: entry.version, json: json.slice(0, VIEW_LENGTH), length: json.length }
}
