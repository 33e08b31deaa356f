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
 * it at once would take each other for boxes of another boot or container that still live. Each box then keeps a lock
 * on this file while it is open, which shows that it lives when its socket file is gone.
 *
 * It is a small database of its own, whose locks the system frees when their owner dies. The first box that enters
 * notes in it which files it uses. A later one must not use others, which would be there if someone had deleted the
 * files while boxes are open: those boxes would not see what it does, and could delete its log when they close.
 *
 * The lock that SQLite keeps on the database of the boxes is not enough: a process loses it when it closes any other
 * descriptor of that file, as a program does that copies it. Nor is this file, which may be deleted.
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

  /** Waits for its turn. @throws SqliteError when the file can't be made or locked; `BUSY` after 10 s. */
  static async enter(sqlite: Sqlite, folder: string, clock: Clock): Promise<OpenLock> {
    const connection = sqlite.open(join(folder, OPEN_LOCK))
    try {
      let foundEmpty = false
      await retryWhileBusy(clock, () => {
        foundEmpty = lockAlone(connection)
        // Those inside leave room for one that enters.
        if (!foundEmpty) connection.exec('begin immediate')
      })
      return new OpenLock(connection, folder, clock, foundEmpty)
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /**
   * The files that the boxes inside use, where they must be in this folder: the box that noted them may have known the
   * folder by another path, such as a link or a mount. @throws SqliteError
   */
  noted(): Original[] {
    // The locks of those inside do not let this one make the table.
    if (this.#connection.prepare(HAS_TABLE).all().length === 0) return []
    const rows = this.#connection.prepare('select path, device, inode from files').all()
    return rows.map(([path, device, inode]) => ({
      path: join(this.#folder, basename(path as string)),
      device: Number(device),
      inode: Number(inode),
    }))
  }

  /** Notes the files that the boxes inside use, for the first one that enters. @throws SqliteError */
  note(files: readonly Original[]): void {
    this.#connection.exec(`${TABLE}; delete from files`)
    const add = this.#connection.prepare('insert into files values (?, ?, ?)')
    for (const { path, device, inode } of files) add.run(path, String(device), String(inode))
  }

  /** Lets the next one enter, and stays inside. @throws SqliteError */
  async stay(): Promise<void> {
    this.#connection.exec(this.foundEmpty ? 'commit; begin' : 'rollback; begin')
    // Reading takes up a lock that this transaction keeps.
    await retryWhileBusy(this.#clock, () => this.#connection.exec('select count(*) from sqlite_schema'))
  }

  /** Doing so twice is harmless. */
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
