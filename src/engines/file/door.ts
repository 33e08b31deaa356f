import { join } from 'node:path'
import type { Clock } from '../../clock.js'
import type { Connection, Sqlite } from './driver.js'
import { DOOR } from './folder.js'
import { retryWhileBusy } from './while-busy.js'

/**
 * The door of a folder: one process or thread at a time opens the database. Several that open it at once would take
 * each other for boxes of another boot or container that still live. It is an empty database of its own, whose lock the
 * system frees when its owner dies.
 */
export class Door {
  readonly #connection: Connection

  private constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Waits for its turn. @throws SqliteError when the file can't be made or locked; `BUSY` after 10 s. */
  static async enter(sqlite: Sqlite, folder: string, clock: Clock): Promise<Door> {
    const connection = sqlite.open(join(folder, DOOR))
    try {
      await retryWhileBusy(clock, () => connection.exec('begin exclusive'))
    } catch (error) {
      connection.close()
      throw error
    }
    return new Door(connection)
  }

  /** Lets the next one in. Doing so twice is harmless. */
  leave(): void {
    this.#connection.close()
  }
}
