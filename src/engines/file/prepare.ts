import { InvalidArgumentError, UnavailableError } from '../../errors.js'
import type { Database } from './database.js'
import type { Machine } from './machine.js'
import { LAYOUT, SCHEMA } from './schema.js'

/**
 * Makes a database ready for use: creates its tables, or checks that they are ours and that its other users are on this
 * boot of this machine. What holders and waiters of an earlier boot left is thrown away; no token falls.
 * @throws InvalidArgumentError for another layout or a foreign database, UnavailableError for other users out of reach.
 */
export async function prepareDatabase(database: Database, machine: Machine): Promise<void> {
  // Numbers begin at the wall clock in microseconds, so that tokens rise even when the folder was deleted.
  const start = Date.now() * 1000
  await database.run(() => prepare(database, machine, start))
  // The mark up to which numbers may be used has to be there after a power cut before the first one is.
  await database.sync()
}

function prepare({ connection }: Database, { bootId, pidNamespace }: Machine, start: number): void {
  const layout = connection.prepare('pragma user_version').get()![0] as number
  if (layout === 0) {
    const tables = connection.prepare('select count(*) as tables from sqlite_schema').get()![0] as number
    if (tables > 0) throw new InvalidArgumentError('signalbox.db in this folder was not made by Signalbox')
    connection.exec(SCHEMA)
    connection.prepare('insert into machine values (?, ?, ?)').run(bootId, pidNamespace, start)
    connection.prepare(`insert into queues values ('', ?)`).run(String(start))
    return
  }
  if (layout !== LAYOUT) {
    throw new InvalidArgumentError(
      `the folder has layout ${layout} and this version of Signalbox knows layout ${LAYOUT}: use the version that made it, or another folder`,
    )
  }
  const [boot, namespace, mark] = connection
    .prepare('select boot, namespace, mark from machine')
    .get() as unknown as [string, string, number]
  if (boot !== bootId) {
    connection.exec(
      `delete from queues where key > ''; delete from requests; delete from claims; delete from sessions; delete from watches`,
    )
    connection.prepare(`update queues set queue = ? where key = ''`).run(String(Math.max(mark, start)))
  } else if (namespace !== pidNamespace) {
    const sessions = connection.prepare('select count(*) as sessions from sessions').get()![0] as number
    if (sessions > 0) {
      throw new UnavailableError(
        'the folder is in use by processes of another process namespace (container), whose end could not be noticed here',
      )
    }
  }
  connection.prepare('update machine set boot = ?, namespace = ?').run(bootId, pidNamespace)
}
