import { InvalidArgumentError, shown } from '../../errors.js'
import { schemaName } from './postgres-url.js'

/** A client of PostgreSQL that is there already, and where the engine keeps its state. */
export interface ExistingPostgres {
  /**
   * A `Pool` or a connected `Client` of `pg`, a `sql` of `postgres`, or a `PGlite`. It stays the caller's, who ends it
   * after the box was closed.
   * - A `Pool` lends one connection for as long as the box is open, and others for single statements.
   * - A `Client` is the box's alone while it is open: statements of the caller's would get into the box's transactions,
   *   and the box's into the caller's. A client that loses its connection has lost it for good, and the box with it.
   * - A `sql` keeps one connection to listen until it is ended. Behind a pooler that gives each transaction another
   *   connection, make it with `prepare: false`.
   * - A `PGlite` is there for boxes of this process alone. Its one connection can't take the locks of a store's
   *   transaction while the caller's goes on, so `in` is refused.
   */
  readonly postgres: object
  /** The schema that the engine has for itself; default `signalbox`. */
  readonly schema?: string | undefined
}

/**
 * The name of the schema.
 * @throws InvalidArgumentError that names the option that is unfit
 */
export function givenSchema(given: Readonly<Record<string, unknown>>): string {
  for (const name of Object.keys(given))
    if (name !== 'schema')
      throw new InvalidArgumentError(
        `PostgreSQL has no option ${shown(name)} beside a client; known is schema`,
      )
  return schemaName(given['schema'])
}
