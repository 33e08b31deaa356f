import { InvalidArgumentError, shown, UnavailableError } from '../../../errors.js'
import type { Query, StatementRunner } from './sql-client.js'

/** A client of `pg` or of PGlite, or the `sql` of a transaction of `postgres`: what is used of it. */
interface Callers {
  query?(text: string, values: readonly string[]): Promise<{ readonly rows: readonly object[] }>
  unsafe?(text: string, values: readonly string[]): Promise<readonly object[]>
}

/** What the server answers a client that has begun no transaction. */
const NO_TRANSACTION = '25P01'

/**
 * Statements in a transaction that the caller has begun and will end.
 * @throws InvalidArgumentError when it is no client that can have one
 */
export function callersTransaction(name: string, transaction: unknown): StatementRunner {
  const query = queryOf(name, transaction)
  return { query, transaction: work => work(query) }
}

function queryOf(name: string, transaction: unknown): Query {
  const isObject = typeof transaction === 'object' || typeof transaction === 'function'
  if (!isObject || transaction === null) throw unfit(shown(transaction))
  const callers = transaction as Callers
  const ask = asker(callers)
  return async (text, values) => {
    try {
      const [row] = await ask(text, values)
      return row && (Object.values(row)[0] as unknown)
    } catch (cause) {
      if ((cause as { code?: unknown }).code === NO_TRANSACTION) throw unfit('a client that has begun none')
      throw new UnavailableError(
        `a statement in the transaction of the caller failed on ${name}: ${(cause as Error).message}`,
        { engine: name, cause },
      )
    }
  }
}

function asker(callers: Callers): (text: string, values: readonly string[]) => Promise<readonly object[]> {
  if ('totalCount' in callers) throw unfit('a pool, which gives each statement another connection')
  if (typeof callers.unsafe === 'function') {
    if ('begin' in callers)
      throw unfit('a client of postgres that has begun no transaction; its begin calls with one')
    return (text, values) => callers.unsafe!(text, values)
  }
  if (typeof callers.query === 'function')
    return async (text, values) => (await callers.query!(text, values)).rows
  throw unfit(shown(callers))
}

function unfit(what: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `a transaction is a client of pg or PGlite that has begun it, or the sql of a transaction of postgres, not ${what}`,
  )
}
