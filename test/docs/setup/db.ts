import Database from 'libsql'

const database = new Database(':memory:')
database.exec(`
  create table invoice (id integer primary key, paid integer not null, fence integer not null);
  insert into invoice values (42, false, 0);
`)

/** Stands for a reader's SQL database. Has the call that clients for PostgreSQL have. */
export const db = {
  query(sql: string, values: readonly unknown[]): Promise<{ rowCount: number }> {
    const named = Object.fromEntries(values.map((value, index) => [index + 1, value]))
    return Promise.resolve({ rowCount: database.prepare(sql).run(named).changes })
  },
}
