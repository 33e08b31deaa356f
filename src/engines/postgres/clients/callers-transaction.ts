import { InvalidArgumentError, shown, UnavailableError } from '../../../errors.js'
import { PG_TEXT, PGLITE_TEXT } from './plain-text.js'
import type { Query } from './sql-client.js'

type Rows = Promise<{ readonly rows: readonly (readonly unknown[])[] }>
type Bytes = PromiseLike<readonly (readonly (Uint8Array | null)[])[]>

/** A client of `pg` or of PGlite, or the `sql` of a transaction of `postgres`: the parts that are used. */
interface Callers {
  query?(statement: object): Rows
  query?(text: string, values: readonly string[], options: typeof PGLITE_TEXT): Rows
  exec?: unknown
  /** `raw` returns columns as bytes, which no option of the caller's changes. */
  unsafe?(text: string, values: readonly string[]): { raw(): Bytes }
}

/** SQLSTATE: the client has begun no transaction. */
const NO_TRANSACTION = '25P01'

/**
 * Runs statements in a transaction that the caller has begun and will end.
 * @throws InvalidArgumentError if it is not a client with a transaction
 */
export function callersTransaction(name: string, transaction: unknown): Query {
  const isObject = typeof transaction === 'object' || typeof transaction === 'function'
  if (!isObject || transaction === null) throw invalid(shown(transaction))
  const callers = transaction as Callers
  const ask = asker(callers)
  return async (text, values) => {
    try {
      return await ask(text, values)
    } catch (cause) {
      if ((cause as { code?: unknown }).code === NO_TRANSACTION) throw invalid('a client that has begun none')
      throw new UnavailableError(
        `a statement in the transaction of the caller failed on ${name}: ${(cause as Error).message}`,
        { engine: name, cause },
      )
    }
  }
}

/** Returns a function that runs a statement and returns the first column of its first row as text. */
function asker(callers: Callers): Query {
  if ('totalCount' in callers) throw invalid('a pool, which gives each statement another connection')
  if (typeof callers.unsafe === 'function') {
    if ('begin' in callers)
      throw invalid('a client of postgres that has begun no transaction; its begin calls with one')
    return async (text, values) => {
      const rows = await callers.unsafe!(text, values).raw()
      const value = rows[0]?.[0]
      return value && Buffer.from(value).toString()
    }
  }
  if (typeof callers.query !== 'function') throw invalid(shown(callers))
  const isPGlite = typeof callers.exec === 'function'
  return async (text, values) => {
    const { rows } = await (isPGlite
      ? callers.query!(text, values, PGLITE_TEXT)
      : callers.query!({ text, values, ...PG_TEXT }))
    return rows[0]?.[0]
  }
}

function invalid(what: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `a transaction is a client of pg or PGlite that has begun it, or the sql of a transaction of postgres, not ${what}`,
  )
}
