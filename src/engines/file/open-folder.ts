import type { Clock, Timer } from '../../base/clock.js'
import { ClosedError, type UnavailableError } from '../../base/errors.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import type { Machine } from '../../base/linux-machine.js'
import type { Database } from './database.js'
import { DeathWatch } from './death-watch.js'
import { loadSqlite, SqliteError, type Sqlite } from './driver.js'
import { FileState } from './file-state.js'
import { prepareFolder } from './folder.js'
import { thisMachine } from './machine.js'
import { Mailbox } from './mailbox.js'
import { replacedOf } from './original-files.js'
import { openDatabase } from './prepare.js'

/** How often a timer checks the files, in milliseconds. Operations check them, too. */
const CHECK_INTERVAL = 1000
/** Number of these checks after which a thread also checks whether the next thread is dead. */
const CHECKS_PER_VISIT = 5

/** A box of this thread. */
export interface LocalBox {
  /** Receives a hint. Ignores a hint that does not concern the box. */
  receive(hint: Hint): void
  /** Removes all requests of a session. Rejects as `Engine.submit`, with ClosedError if this box closes. */
  revoke(session: string): Promise<unknown>
  /** Ends the box, because the files were replaced: its grants may no longer exclude others. */
  ended(reason: UnavailableError): void
}

/** The folders that boxes of this thread use, by path. */
const folders = new Map<string, Promise<OpenFolder>>()

/**
 * An open folder. The boxes of a thread that open it by the same path share it. They share one database connection and
 * one socket, and all their operations in one tick become one transaction.
 */
export class OpenFolder {
  readonly state: FileState
  readonly deaths: DeathWatch
  readonly #closeFiles: () => Promise<void>
  readonly #forget: () => void
  readonly #clock: Clock
  #entered = 0
  #checkTimer: Timer | undefined
  #checks = 0
  #isClosed = false
  /** Whether the database may still list a session of this thread that could not leave. */
  #hasRemains = false

  /**
   * @param boxes the boxes of this thread that have joined, by session.
   * @param closeFiles closes the database. Never rejects.
   * @param forget makes the next box open the folder again.
   */
  private constructor(
    readonly machine: Machine,
    readonly database: Database,
    readonly mailbox: Mailbox,
    readonly boxes: Map<string, LocalBox>,
    closeFiles: () => Promise<void>,
    forget: () => void,
    clock: Clock,
  ) {
    this.state = new FileState(database.connection)
    this.deaths = this.#watchDeaths()
    this.#closeFiles = closeFiles
    this.#forget = forget
    this.#clock = clock
    database.rolledBack = () => this.state.forget()
    this.#checkLater()
  }

  /**
   * Opens a folder for one more box, which must call `leave`.
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
      // The files were replaced before the first box entered.
      if (opened.#entered === 0) await opened.#close()
    }
  }

  static #open(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenFolder> {
    const forget = (): void => forgetFolder(path, opening)
    const open = async (): Promise<OpenFolder> => {
      const { database, openLock } = await openDatabase(sqlite, path, machine, clock)
      // Leaves the open lock first: SQLite may delete the log with the last box, and a box that enters then must not
      // look for it. But libsql writes to a file for some time after closing it. With libsql, the lock stays if the
      // files were replaced, so that no box uses new files before that.
      const closeFiles = async (): Promise<void> => {
        if (sqlite.name !== 'libsql' || !database.files.replaced) openLock.leave()
        await database.close().catch(() => undefined)
      }
      try {
        const boxes = new Map<string, LocalBox>()
        const mailbox = await Mailbox.open(path, message => receive(message, boxes), clock)
        return new OpenFolder(machine, database, mailbox, boxes, closeFiles, forget, clock)
      } catch (error) {
        await closeFiles()
        throw error
      }
    }
    const opening = open()
    opening.catch(forget)
    folders.set(path, opening)
    return opening
  }

  /**
   * Closes the files and the socket when the last box leaves.
   * @param remains whether the database may still list the session of the box, because it could not leave, for example
   * on a full disk. After this thread has closed, other threads find it dead, and free what the session held.
   */
  async leave(remains: boolean): Promise<void> {
    this.#hasRemains ||= remains
    if (--this.#entered === 0) await this.#close()
  }

  /** Ends all boxes if the files are known to be replaced. */
  endIfReplaced(): void {
    const { replaced } = this.database.files
    if (replaced) for (const box of [...this.boxes.values()]) box.ended(replaced)
  }

  /**
   * Reads values outside of a transaction: a single statement sees a consistent snapshot, and does not wait for the
   * write lock. Returns undefined when a writer was killed and the log must be recovered first, which takes the write
   * lock.
   */
  readAlone<T>(work: (state: FileState) => T): T | undefined {
    try {
      this.database.files.check()
      return work(this.state)
    } catch (error) {
      if (error instanceof SqliteError && error.code === 'BUSY') return undefined
      throw error
    }
  }

  #watchDeaths(): DeathWatch {
    const { database, state, mailbox, boxes } = this
    return new DeathWatch(mailbox, {
      isLocal: session => boxes.has(session),
      address: session => database.run(() => state.member(session)?.address),
      at: address => database.run(() => state.sessions.at(address)),
      remove: session => this.#remove(session),
      wake: (session, id) => boxes.get(session)?.receive({ type: 'wake', about: id }),
    })
  }

  /** Frees everything that a dead session held, through any box that stays open meanwhile. */
  async #remove(session: string): Promise<void> {
    for (const box of this.boxes.values()) {
      try {
        await box.revoke(session)
      } catch (error) {
        if (error instanceof ClosedError) continue
        throw error
      }
      await this.database.run(() => this.state.leave(session))
      return
    }
    throw new ClosedError('the boxes of this thread were closed')
  }

  #checkLater(): void {
    this.#checkTimer = this.#clock.after(CHECK_INTERVAL, () => this.#checkFiles(), false)
  }

  /** Ends all boxes if the files were replaced, because others may already use new files under the same path. */
  #checkFiles(): void {
    try {
      this.database.files.check()
    } catch {
      this.endIfReplaced()
    }
    // Otherwise only the check has failed. A later one may succeed, for example when the folder is accessible again.
    if (this.database.files.replaced) return
    this.#checkLater()
    if (++this.#checks % CHECKS_PER_VISIT === 0) void this.#visitNext()
  }

  /**
   * Frees everything that dead sessions held, even if no box waits for their keys. Checks the threads after this one,
   * in the order of their addresses, up to the next live one. So each dead thread is checked by one live thread, and
   * each live thread checks only one other live thread. Never rejects.
   */
  async #visitNext(): Promise<void> {
    let visited: string | undefined
    for (;;) {
      let next: string | undefined
      try {
        next = this.readAlone(state => state.sessions.addressAfter(this.mailbox.address))
      } catch {
        // The database can't be read now.
      }
      // A thread that is still listed is alive, or could not be removed now.
      if (next === undefined || next === visited) return
      await this.deaths.visit([next])
      visited = next
    }
  }

  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#forget()
    this.#checkTimer?.cancel()
    this.deaths.stop()
    await this.mailbox.close(this.#hasRemains)
    await this.#closeFiles()
  }

  /** Returns false if the box must open the folder again, as if it were in a process of its own. */
  #enter(): boolean {
    const isUsable =
      !this.#isClosed && !this.database.log.failure && replacedOf(this.database.files.all) === undefined
    if (isUsable) this.#entered++
    return isUsable
  }
}

function forgetFolder(path: string, opening: Promise<OpenFolder>): void {
  if (folders.get(path) === opening) folders.delete(path)
}

/** Passes a hint from another thread to the boxes of this thread. */
function receive(message: string, boxes: ReadonlyMap<string, LocalBox>): void {
  const space = message.indexOf(' ')
  const type = message.slice(0, space)
  if (type !== 'wake' && type !== 'lost' && type !== 'changed') return
  for (const box of boxes.values()) box.receive({ type, about: message.slice(space + 1) })
}
