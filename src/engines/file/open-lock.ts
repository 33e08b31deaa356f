import { basename, join } from 'node:path'
import type { Clock } from '../../base/clock.js'
import { SqliteError, type Connection, type Sqlite } from './driver.js'
import { OPEN_LOCK } from './folder.js'
import type { Original } from './original-files.js'
import { retryWhileBusy } from './while-busy.js'

const TABLE =
  'create table if not exists files (path text primary key, device text, inode text) without rowid'
const HAS_TABLE = `select 1 from sqlite_schema where name = 'files'`

/**
 * The lock for opening the database of a folder. One process or thread at a time opens the database: several that open
 * it at once would take each other for live boxes of another boot or container. Each box then keeps a lock on this file
 * while it is open, which shows that the box is alive even if its socket file is gone.
 *
 * The file is a small database, whose locks the system frees when their owner dies. The first box that enters records
 * in it which files it uses. A later box must use the same files. If someone has deleted them while boxes are open,
 * these boxes would not see the changes of a box with new files, and could delete its log when they close.
 *
 * The lock that SQLite keeps on the main database is not enough: a process loses it when it closes any other descriptor
 * of that file, for example after copying it. The lock on this file is not enough either, because the file may be
 * deleted.
 */
export class OpenLock {
  readonly #connection: Connection
  readonly #folder: string
  readonly #clock: Clock
  /** Whether no box of any process was inside when this one entered. */
  readonly foundEmpty: boolean

  private constructor(connection: Connection, folder: string, clock: Clock, foundEmpty: boolean) {
    this.#connection = connection
    this.#folder = folder
    this.#clock = clock
    this.foundEmpty = foundEmpty
  }

  /** Waits for its turn. @throws SqliteError when the file can't be created or locked; `BUSY` after 10 s. */
  static async enter(sqlite: Sqlite, folder: string, clock: Clock): Promise<OpenLock> {
    const connection = sqlite.open(join(folder, OPEN_LOCK))
    try {
      let foundEmpty = false
      await retryWhileBusy(clock, () => {
        foundEmpty = lockAlone(connection)
        // The locks of the boxes inside let one more box enter at a time.
        if (!foundEmpty) connection.exec('begin immediate')
      })
      return new OpenLock(connection, folder, clock, foundEmpty)
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /**
   * Returns the files that the boxes inside use, with their paths in this folder: the box that recorded them may have
   * opened the folder by another path, such as a link or a mount. @throws SqliteError
   */
  noted(): Original[] {
    // While boxes are inside, this one can't create the table.
    if (this.#connection.prepare(HAS_TABLE).all().length === 0) return []
    const rows = this.#connection.prepare('select path, device, inode from files').all()
    return rows.map(([path, device, inode]) => ({
      path: join(this.#folder, basename(path as string)),
      device: Number(device),
      inode: Number(inode),
    }))
  }

  /** Records the files in use. Only for the first box that enters. @throws SqliteError */
  note(files: readonly Original[]): void {
    this.#connection.exec(`${TABLE}; delete from files`)
    const add = this.#connection.prepare('insert into files values (?, ?, ?)')
    for (const { path, device, inode } of files) add.run(path, String(device), String(inode))
  }

  /** Lets the next box enter, and stays inside. @throws SqliteError */
  async stay(): Promise<void> {
    this.#connection.exec(this.foundEmpty ? 'commit; begin' : 'rollback; begin')
    // Reading takes a lock that this transaction keeps.
    await retryWhileBusy(this.#clock, () => this.#connection.exec('select count(*) from sqlite_schema'))
  }

  /** Further calls do nothing. */
  leave(): void {
    this.#connection.close()
  }
}

/** Locks the file if no other connection has any lock on it, and returns whether it did. */
function lockAlone(connection: Connection): boolean {
  try {
    connection.exec('begin exclusive')
    return true
  } catch (error) {
    if (error instanceof SqliteError && error.code === 'BUSY') return false
    throw error
  }
}
