/** An existing client of PostgreSQL, and where the engine keeps its state. */
export interface ExistingPostgres {
  /**
   * A `Pool` or a connected `Client` of `pg`, a `sql` of `postgres`, a `PGlite`, or a {@link ClientLender}. The caller
   * keeps it, and ends it after the box is closed.
   * - A `Pool`: the box opens up to five connections of its own, with the pool's options and `Client`. Its listeners of
   *   `connect` receive them.
   * - A `Client`: only the box may use it while it is open, or statements of one would run in transactions of the
   *   other. If it loses its connection, the box ends, because such a client can't reconnect.
   * - A {@link ClientLender}: for a package that hides its pool. The box keeps three clients until it is closed.
   * - A `sql`: the box opens up to five connections of its own, with its options. Behind a pooler in transaction mode,
   *   make it with `prepare: false`.
   * - A `PGlite`: for boxes of one process only. Transactions of stores refuse the option `in`, because the only
   *   connection is in use by the caller's transaction.
   */
  readonly postgres: object
  /** The schema that the engine uses for itself; default `signalbox`. */
  readonly schema?: string | undefined
}
