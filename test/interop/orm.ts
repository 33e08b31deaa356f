import type { ExistingPostgres, SqlTransaction } from '../../src/index.js'

/** A package that accesses PostgreSQL, used as in an application. Its table is `invoice (id, paid)`. */
export interface Orm {
  /** The URL or client that the application passes to `open`. */
  readonly source: string | ExistingPostgres
  /** Runs `work` in a transaction of the package. `pay` changes a row in the same transaction. */
  transaction(
    work: (transaction: SqlTransaction, pay: (id: number) => Promise<unknown>) => Promise<void>,
  ): Promise<unknown>
  /** An object of the same kind as a transaction that has not begun one. */
  readonly outside: SqlTransaction
  close(): Promise<unknown>
}

/** Connects a package to a database. */
export type Connect = (url: string) => Orm | Promise<Orm>
