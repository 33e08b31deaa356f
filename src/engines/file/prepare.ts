import { join } from 'node:path'
import type { Clock } from '../../base/clock.js'
import { InvalidArgumentError, UnavailableError } from '../../base/errors.js'
import { MARK_AHEAD } from './counter.js'
import { Database } from './database.js'
import { OpenLock } from './open-lock.js'
import type { Connection, Sqlite } from './driver.js'
import { PATIENCE } from './failures.js'
import { DATABASE, OPEN_LOCK, makeFiles } from './folder.js'
import type { Machine } from '../../base/linux-machine.js'
import { replacedOf } from './original-files.js'
import { presenceOf } from './presence.js'
import { LAYOUT, SCHEMA } from './schema.js'

/** The boxes of a folder from another boot or other namespaces, which this process could not watch. */
interface ForeignBoxes {
  readonly where: string
  readonly addresses: readonly string[]
}

/**
 * Opens the database of a folder and prepares it for use: creates its tables, or checks that Signalbox has created them
 * and that its boxes are on this boot of this machine, in these namespaces. Deletes the locks and requests of dead
 * boxes of another boot or namespace. Tokens never decrease. The caller must leave the open lock when the box closes.
 * @throws InvalidArgumentError for another layout or a database of another program; UnavailableError while boxes use
 * other files, or while boxes of another boot or namespace are or may be alive; SqliteError when SQLite fails.
 */
export async function openDatabase(
  sqlite: Sqlite,
  folder: string,
  machine: Machine,
  clock: Clock,
): Promise<{ database: Database; openLock: OpenLock }> {
  let missing: string | undefined
  for (;;) {
    const before = missing
    const openLock = await OpenLock.enter(sqlite, folder, clock)
    let database: Database | undefined
    let isOpen = false
    try {
      missing = replacedInside(openLock)
      if (missing === undefined) {
        makeFiles(folder)
        const path = join(folder, DATABASE)
        database = await Database.open(sqlite, path, clock, PATIENCE, [join(folder, OPEN_LOCK)])
        if (openLock.foundEmpty) openLock.note(database.files.all)
        // The boxes inside may have left since this one entered. Then SQLite has deleted files with the last of them.
        if (replacedInside(openLock) === undefined) {
          await initialize(database, machine, folder, openLock)
          await openLock.stay()
          // The mark up to which numbers may be used must survive a power failure before the first number is used.
          await database.log.sync()
          isOpen = true
          return { database, openLock }
        }
      } else if (before !== undefined) {
        throw new UnavailableError(
          `${missing} was deleted, moved or replaced while boxes use it: close those boxes or end their processes first`,
        )
      }
    } finally {
      if (!isOpen) {
        await database?.close().catch(() => undefined)
        openLock.leave()
      }
    }
  }
}

/**
 * Returns a file that the boxes inside used and that is missing now. Either all of them have left since this box
 * entered, or another program has deleted, moved or replaced it. Then it is missing again after a second entry.
 */
function replacedInside(openLock: OpenLock): string | undefined {
  return openLock.foundEmpty ? undefined : replacedOf(openLock.noted())
}

/**
 * Checks inside a transaction that no box of another boot or namespace has joined since the database was opened.
 * @throws UnavailableError otherwise.
 */
export function refuseMoved({ connection }: Database, machine: Machine): void {
  const where = whereOf(connection)
  if (where !== shown(machine)) throw inUse(where, machine)
}

/**
 * Creates the tables, or deletes the locks and requests of boxes of another boot or other namespaces. Before, all of
 * these boxes must be proven dead: their sockets refuse connections. If a socket file is missing, no other connection
 * may have a lock on the open lock or on the database. A live box can lose one of these two locks, when its process
 * closes another descriptor of the file or the file is deleted, but it hardly loses both.
 */
async function initialize(
  database: Database,
  machine: Machine,
  folder: string,
  { foundEmpty }: OpenLock,
): Promise<void> {
  // Numbers begin at the wall clock in microseconds, so that tokens rise even when the folder was deleted.
  const start = Date.now() * 1000
  const foreign = await database.run(() => prepare(database.connection, machine, start))
  if (foreign === undefined) return
  const { where, addresses } = foreign
  const presence = await presenceOf(folder, addresses)
  if (presence === 'alive') throw inUse(where, machine)
  if (presence === 'dead') {
    await database.run(() => {
      // A box that opened the database earlier may have joined meanwhile.
      const found = addressesIn(database.connection)
      if (found.some(address => !addresses.includes(address))) throw inUse(where, machine)
      takeOver(database.connection, machine, start)
    })
  } else if (!(foundEmpty && database.runIfUnshared(() => takeOver(database.connection, machine, start)))) {
    throw unproven(where, machine)
  }
}

/**
 * Returns the boxes that must be proven dead before this process may use the database; undefined when there are none.
 */
function prepare(connection: Connection, machine: Machine, start: number): ForeignBoxes | undefined {
  const layout = connection.prepare('pragma user_version').get()![0] as number
  if (layout === 0) {
    const tables = connection.prepare('select count(*) as tables from sqlite_schema').get()![0] as number
    if (tables > 0) throw new InvalidArgumentError('signalbox.db in this folder was not made by Signalbox')
    connection.exec(`${SCHEMA}; pragma user_version = ${LAYOUT}`)
    connection
      .prepare('insert into machine values (?, ?, ?)')
      .run(machine.bootId, machine.namespaces, start + MARK_AHEAD)
    connection.prepare(`insert into queues values ('', ?, 0)`).run(String(start))
    return undefined
  }
  if (layout !== LAYOUT) {
    throw new InvalidArgumentError(
      `the folder has layout ${layout} and this version of Signalbox knows layout ${LAYOUT}: use the version ` +
        'that made it, or another folder',
    )
  }
  connection.exec(SCHEMA)
  const where = whereOf(connection)
  if (where === shown(machine)) return undefined
  const addresses = addressesIn(connection)
  // Sessions remain after a crash of the machine or a kill of the container.
  if (addresses.length > 0) return { where, addresses }
  takeOver(connection, machine, start)
  return undefined
}

/** Returns the machine that the database belongs to, as {@link shown} does. */
function whereOf(connection: Connection): string {
  const [bootId, namespaces] = connection.prepare('select boot, namespace from machine').get() as [
    string,
    string,
  ]
  return shown({ bootId, namespaces })
}

function addressesIn(connection: Connection): string[] {
  return connection
    .prepare('select address from sessions')
    .all()
    .map(row => row[0] as string)
}

/** Deletes all holders and waiters, and sets the counter above all numbers that may have been used. */
function takeOver(connection: Connection, { bootId, namespaces }: Machine, start: number): void {
  connection.exec(
    `delete from queues where key > '';
     delete from tails; delete from requests; delete from claims; delete from sessions; delete from watches;
     delete from signs`,
  )
  const mark = connection.prepare('select mark from machine').get()![0] as number
  const next = Math.max(mark, start)
  connection.prepare(`update queues set queue = ? where key = ''`).run(String(next))
  connection
    .prepare('update machine set boot = ?, namespace = ?, mark = ?')
    .run(bootId, namespaces, next + MARK_AHEAD)
}

function inUse(where: string, machine: Machine): UnavailableError {
  return new UnavailableError(
    `the folder is in use by processes of another container, ${where}: ` +
      `a process of this one, ${shown(machine)}, could not notice when they die`,
  )
}

function unproven(where: string, machine: Machine): UnavailableError {
  return new UnavailableError(
    `the folder was last used in another container or before a restart, ${where}, and not on ` +
      `${shown(machine)}. Some of its boxes no longer have a socket, and a process that has the database open may ` +
      'have one of these boxes: end that process first',
  )
}

function shown({ bootId, namespaces }: Machine): string {
  return `boot ${bootId} ${namespaces}`
}
