import type { Clock } from '../../clock.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import type { Machine } from '../../linux-machine.js'
import type { Database } from './database.js'
import { loadSqlite, type Sqlite } from './driver.js'
import { FileState } from './file-state.js'
import { prepareFolder } from './folder.js'
import { thisMachine } from './machine.js'
import { Mailbox } from './mailbox.js'
import type { OpenLock } from './open-lock.js'
import { replacedOf } from './original-files.js'
import { openDatabase } from './prepare.js'

/** Takes a hint for a box, which ignores one that is not about it. */
export type Receive = (hint: Hint) => void

/** The folders that boxes of this thread use, by path. */
const folders = new Map<string, Promise<OpenFolder>>()

/** The files and the socket of a folder. */
interface OpenedParts {
  readonly database: Database
  readonly openLock: OpenLock
  readonly mailbox: Mailbox
  readonly receivers: Map<string, Receive>
}

interface FolderParts extends OpenedParts {
  readonly machine: Machine
  readonly sqlite: Sqlite
  /** Lets the next box open the folder anew. */
  readonly forget: () => void
}

/**
 * A folder that is open. The boxes of a thread that open it by the same path share it: they have one turn among the
 * processes and one socket, and all that they ask for in one tick is one transaction.
 */
export class OpenFolder {
  readonly machine: Machine
  readonly database: Database
  readonly state: FileState
  readonly mailbox: Mailbox
  /** Take the hints for the boxes of this thread, by session. */
  readonly receivers: Map<string, Receive>
  readonly #sqlite: Sqlite
  readonly #openLock: OpenLock
  readonly #forget: () => void
  #boxes = 0
  #isClosed = false
  /** Whether others know a session of this thread that could not leave. */
  #hasRemains = false

  private constructor(parts: FolderParts) {
    const { machine, sqlite, database, openLock, mailbox, receivers, forget } = parts
    this.machine = machine
    this.database = database
    this.state = new FileState(database.connection)
    this.mailbox = mailbox
    this.receivers = receivers
    this.#sqlite = sqlite
    this.#openLock = openLock
    this.#forget = forget
    database.rolledBack = () => this.state.forget()
  }

  /**
   * Opens a folder for one more box, which must leave it.
   * @param path absolute
   * @param clock the same for all boxes
   * @throws UnavailableError, InvalidArgumentError, SqliteError as `thisMachine`, `prepareFolder` and `openDatabase`
   */
  static async enter(path: string, clock: Clock): Promise<OpenFolder> {
    const machine = await thisMachine()
    const sqlite = await loadSqlite()
    await prepareFolder(path)
    for (;;) {
      const opening = folders.get(path) ?? OpenFolder.#open(path, machine, sqlite, clock)
      const opened = await opening
      if (opened.#enter()) return opened
      forgetFolder(path, opening)
    }
  }

  static #open(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenFolder> {
    const forget = (): void => forgetFolder(path, opening)
    const opening = openParts(path, machine, sqlite, clock).then(
      parts => new OpenFolder({ ...parts, machine, sqlite, forget }),
    )
    opening.catch(forget)
    folders.set(path, opening)
    return opening
  }

  /**
   * Closes the files and the socket with the last box.
   * @param remains whether others know the session of the box because it could not leave, for example on a full disk.
   * Once this thread has closed, they find it dead, and free what the session had.
   */
  async leave(remains: boolean): Promise<void> {
    this.#hasRemains ||= remains
    if (--this.#boxes > 0) return
    this.#isClosed = true
    this.#forget()
    await (this.#hasRemains ? this.mailbox.abandon() : this.mailbox.close())
    await closeFiles(this.#sqlite, this.database, this.#openLock)
  }

  /** False if a new box must open the folder itself, as if it were in a process of its own. */
  #enter(): boolean {
    const isUsable =
      !this.#isClosed && !this.database.hasFailed && replacedOf(this.database.files.all) === undefined
    if (isUsable) this.#boxes++
    return isUsable
  }
}

function forgetFolder(path: string, opening: Promise<OpenFolder>): void {
  if (folders.get(path) === opening) folders.delete(path)
}

async function openParts(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenedParts> {
  const { database, openLock } = await openDatabase(sqlite, path, machine, clock)
  try {
    const receivers = new Map<string, Receive>()
    const mailbox = await Mailbox.open(path, message => receive(message, receivers), clock)
    return { database, openLock, mailbox, receivers }
  } catch (error) {
    await closeFiles(sqlite, database, openLock)
    throw error
  }
}

/** Never rejects. */
async function closeFiles(sqlite: Sqlite, database: Database, openLock: OpenLock): Promise<void> {
  // The open lock first: SQLite may delete the log with the last box, and who then enters must not look for it. But
  // libsql writes to a file some time after closing it. New files must not be used before that.
  if (sqlite.name !== 'libsql' || !database.files.replaced) openLock.leave()
  await database.close().catch(() => undefined)
}

/** Passes a hint that another thread has sent to the boxes of this one. */
function receive(message: string, receivers: ReadonlyMap<string, Receive>): void {
  const space = message.indexOf(' ')
  const type = message.slice(0, space)
  if (type !== 'wake' && type !== 'lost' && type !== 'changed') return
  for (const each of receivers.values()) each({ type, about: message.slice(space + 1) })
}
