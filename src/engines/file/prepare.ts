import { InvalidArgumentError, UnavailableError } from '../../errors.js'
import type { Database } from './database.js'
import type { Connection } from './driver.js'
import { MARK_AHEAD } from './file-state.js'
import type { Machine } from './machine.js'
import { anyoneListens } from './presence.js'
import { LAYOUT, SCHEMA } from './schema.js'

/**
 * Makes a database ready for use: creates its tables, or checks that they are ours and that its other users are on this
 * boot of this machine. What holders and waiters of an earlier boot, or of a process namespace that is gone, have left
 * is thrown away; no token falls.
 * @throws InvalidArgumentError for another layout or a foreign database, UnavailableError for other users out of reach.
 */
export async function prepareDatabase(database: Database, machine: Machine, folder: string): Promise<void> {
  // Numbers begin at the wall clock in microseconds, so that tokens rise even when the folder was deleted.
  const start = Date.now() * 1000
  const strangers = await database.run(() => prepare(database, machine, start))
  if (strangers.length > 0) {
    // A container that was killed leaves sessions behind, and comes back with another namespace.
    if (await anyoneListens(folder, strangers)) throw strange()
    await database.run(() => moveIn(database, machine, strangers))
  }
  // The mark up to which numbers may be used has to be there after a power cut before the first one is.
  await database.sync()
}

/** @throws UnavailableError when processes of another namespace have come in meanwhile; inside a transaction. */
export function refuseNamespace({ connection }: Database, { pidNamespace }: Machine): void {
  if (namespaceOf(connection) !== pidNamespace) throw strange()
}

/** Gives the addresses of sessions of another process namespace, which have to be proven dead. */
function prepare(database: Database, machine: Machine, start: number): string[] {
  const { connection } = database
  const layout = connection.prepare('pragma user_version').get()![0] as number
  if (layout === 0) {
    const tables = connection.prepare('select count(*) as tables from sqlite_schema').get()![0] as number
    if (tables > 0) throw new InvalidArgumentError('signalbox.db in this folder was not made by Signalbox')
    connection.exec(SCHEMA)
    connection
      .prepare('insert into machine values (?, ?, ?)')
      .run(machine.bootId, machine.pidNamespace, start + MARK_AHEAD)
    connection.prepare(`insert into queues values ('', ?)`).run(String(start))
    return []
  }
  if (layout !== LAYOUT) {
    throw new InvalidArgumentError(
      `the folder has layout ${layout} and this version of Signalbox knows layout ${LAYOUT}: use the version that made it, or another folder`,
    )
  }
  const [boot, namespace, mark] = connection
    .prepare('select boot, namespace, mark from machine')
    .get() as unknown as [string, string, number]
  if (boot !== machine.bootId) {
    clear(database)
    const next = Math.max(mark, start)
    connection.prepare(`update queues set queue = ? where key = ''`).run(String(next))
    connection.prepare('update machine set mark = ?').run(next + MARK_AHEAD)
  } else if (namespace !== machine.pidNamespace) {
    const strangers = addresses(database)
    if (strangers.length > 0) return strangers
  }
  takeOver(database, machine)
  return []
}

/** Throws away what those sessions have left, if nobody else has come since they were found dead. */
function moveIn(database: Database, machine: Machine, dead: readonly string[]): void {
  // Another process of this namespace may have been quicker.
  if (namespaceOf(database.connection) === machine.pidNamespace) return
  if (addresses(database).some(address => !dead.includes(address))) throw strange()
  clear(database)
  takeOver(database, machine)
}

function namespaceOf(connection: Connection): unknown {
  return connection.prepare('select namespace from machine').get()![0]
}

function addresses({ connection }: Database): string[] {
  return connection
    .prepare('select address from sessions')
    .all()
    .map(row => row[0] as string)
}

function clear({ connection }: Database): void {
  connection.exec(
    `delete from queues where key > ''; delete from requests; delete from claims; delete from sessions; delete from watches`,
  )
}

function takeOver({ connection }: Database, { bootId, pidNamespace }: Machine): void {
  connection.prepare('update machine set boot = ?, namespace = ?').run(bootId, pidNamespace)
}

function strange(): UnavailableError {
  return new UnavailableError(
    'the folder is in use by processes of another process namespace (container), whose end could not be noticed here',
  )
}
