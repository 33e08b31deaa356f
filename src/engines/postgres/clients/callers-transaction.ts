import { InvalidArgumentError, shown, UnavailableError } from '../../../base/errors.js'
import { PG_TEXT } from './pg-client.js'
import { PGLITE_TEXT } from './pglite-client.js'
import { firstOf, type PostgresSql } from './postgres-client.js'
import type { Query } from './sql-client.js'

type Rows = PromiseLike<{ readonly rows: readonly (readonly unknown[])[] }>

/** A client of `pg` or of PGlite, the `sql` of a transaction of `postgres`, or an object that runs statements. */
interface Callers {
  query?(statement: object): Rows
  query?(text: string, values: readonly string[], options: typeof PGLITE_TEXT): Rows
  query?(text: string, values: readonly string[]): PromiseLike<unknown>
  /** Present on a PGlite. */
  exec?: unknown
  /** Present on a client of `pg`. */
  getTypeParser?: unknown
  unsafe?: PostgresSql['unsafe']
}

/** An error, with the properties in which packages keep the error of the server. */
interface PackageError {
  readonly code?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  /** Set by Sequelize. */
  readonly original?: unknown
  /** Set by Prisma. */
  readonly meta?: { readonly driverAdapterError?: unknown }
}

/** SQLSTATEs of a client or transaction that can't be used. */
const UNUSABLE = new Map<unknown, string>([
  ['25P01', 'a client that has begun none'],
  ['25P02', 'one that is aborted, because an earlier statement in it failed'],
  ['25006', 'one that is read-only'],
])

/**
 * Returns a function that runs statements in a transaction that the caller has begun and will end. The function returns
 * the first column of the first row as text.
 * @throws InvalidArgumentError if it is not a client with a transaction
 */
export function callersTransaction(name: string, transaction: unknown): Query {
  const isObject = typeof transaction === 'object' || typeof transaction === 'function'
  if (!isObject || transaction === null) throw invalid(shown(transaction))
  const ask = asker(transaction as Callers)
  return async (text, values) => {
    try {
      return await ask(text, values)
    } catch (cause) {
      if (cause instanceof InvalidArgumentError) throw cause
      const { code, message } = serverError(cause as PackageError)
      const unusable = UNUSABLE.get(code)
      if (unusable !== undefined) throw invalid(unusable)
      throw new UnavailableError(
        `a statement in the transaction of the caller failed on ${name}: ${String(message)}`,
        { engine: name, cause },
      )
    }
  }
}

function asker(callers: Callers): Query {
  if ('totalCount' in callers) throw invalid('a pool, which gives each statement another connection')
  if (isNeonHttp(callers))
    throw invalid(`${NEON_HTTP}; use a transaction of a Pool of @neondatabase/serverless`)
  if (typeof callers.unsafe === 'function') {
    if ('begin' in callers)
      throw invalid('a client of postgres that has begun no transaction; its begin calls with one')
    return async (text, values) => firstOf(await callers.unsafe!(text, [...values]).raw())
  }
  if (typeof callers.query !== 'function') throw invalid(shown(callers))
  if (typeof callers.exec === 'function')
    return async (text, values) => (await callers.query!(text, values, PGLITE_TEXT)).rows[0]?.[0]
  if (typeof callers.getTypeParser === 'function')
    return async (text, values) => (await callers.query!({ text, values, ...PG_TEXT })).rows[0]?.[0]
  return async (text, values) => {
    const result = (await callers.query!(text, values)) as { readonly rows?: readonly unknown[] } | undefined
    const [row] = Array.isArray(result) ? (result as readonly unknown[]) : (result?.rows ?? [])
    const [value, ...more] = Object.values(row ?? {}) as readonly unknown[]
    // Otherwise a fence would consider the grant lost.
    if (text.startsWith('select') && (typeof value !== 'string' || more.length > 0))
      throw invalid('an object whose query does not return the rows as the server sent them')
    return value
  }
}

/** Returns the error of the server, which packages wrap in errors of their own. */
function serverError(error: PackageError): PackageError {
  const inner = error.cause ?? error.original ?? error.meta?.driverAdapterError
  return typeof inner === 'object' && inner !== null && inner !== error ? serverError(inner) : error
}

function invalid(what: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `a transaction is a client of pg or PGlite that has begun it, the sql of a transaction of postgres, or an object with query(text, values), not ${what}`,
  )
}

/** Describes such a client in errors. */
export const NEON_HTTP = 'the sql of neon(), which sends each statement in an HTTP request, without a session'

/**
 * Whether a client is a function that `neon` of `@neondatabase/serverless` returns. It resembles the `sql` of a
 * transaction of `postgres`, but that has no property `transaction`.
 */
export function isNeonHttp(client: unknown): boolean {
  return typeof client === 'function' && 'transaction' in client && !('begin' in client)
}
