import type { ExistingPostgres, SqlTransaction } from '../../src/index.js'

/** A package that keeps rows in PostgreSQL, used as an application would. Its table is `invoice (id, paid)`. */
export interface Orm {
  /** The URL or client with which the application opens its box. */
  readonly source: string | ExistingPostgres
  /** Runs `work` in a transaction of the package. `pay` changes a row in it. */
  transaction(
    work: (transaction: SqlTransaction, pay: (id: number) => Promise<unknown>) => Promise<void>,
  ): Promise<unknown>
  /** An object of the same kind that has begun no transaction. */
  readonly outside: SqlTransaction
  close(): Promise<unknown>
}

/** Connects one to a database. */
export type Connect = (url: string) => Orm | Promise<Orm>
