import type { Clock } from '../../clock.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import type { Machine } from '../../linux-machine.js'
import type { Database } from './database.js'
import { loadSqlite, type Sqlite } from './driver.js'
import { FileState } from './file-state.js'
import { prepareFolder } from './folder.js'
import { thisMachine } from './machine.js'
import type { OpenLock } from './open-lock.js'
import { replacedOf } from './original-files.js'
import { openDatabase } from './prepare.js'

/** The folders that boxes of this thread use, by path. */
const folders = new Map<string, Promise<OpenFolder>>()

/**
 * A folder that is open. The boxes of a thread that open it by the same path share it: they have one turn among the
 * processes, and all that they ask for in one tick is one transaction.
 */
export class OpenFolder {
  readonly machine: Machine
  readonly database: Database
  readonly state: FileState
  /** Take the hints for the boxes of this thread, by the address of their mailboxes. */
  readonly receivers = new Map<string, (hint: Hint) => void>()
  readonly #sqlite: Sqlite
  readonly #openLock: OpenLock
  readonly #forget: () => void
  #boxes = 0
  #isClosed = false

  /** @param forget lets the next box open the folder anew. */
  private constructor(
    machine: Machine,
    sqlite: Sqlite,
    database: Database,
    openLock: OpenLock,
    forget: () => void,
  ) {
    this.machine = machine
    this.database = database
    this.state = new FileState(database.connection)
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
      forget(path, opening)
    }
  }

  static #open(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenFolder> {
    const over = (): void => forget(path, opening)
    const opening = openDatabase(sqlite, path, machine, clock).then(
      ({ database, openLock }) => new OpenFolder(machine, sqlite, database, openLock, over),
    )
    opening.catch(over)
    folders.set(path, opening)
    return opening
  }

  /** Closes the files with the last box. */
  async leave(): Promise<void> {
    if (--this.#boxes > 0) return
    this.#isClosed = true
    this.#forget()
    // The open lock first: SQLite may delete the log with the last box, and who then enters must not look for it. But
    // libsql writes to a file some time after closing it. New files must not be used before that.
    if (this.#sqlite.name !== 'libsql' || !this.database.files.replaced) this.#openLock.leave()
    await this.database.close().catch(() => undefined)
  }

  /** False if a new box must open the folder itself, as if it were in a process of its own. */
  #enter(): boolean {
    const isUsable =
      !this.#isClosed && !this.database.hasFailed && replacedOf(this.database.files.all) === undefined
    if (isUsable) this.#boxes++
    return isUsable
  }
}

function forget(path: string, opening: Promise<OpenFolder>): void {
  if (folders.get(path) === opening) folders.delete(path)
}
