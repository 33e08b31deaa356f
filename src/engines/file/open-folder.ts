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
import type { OpenLock } from './open-lock.js'
import { replacedOf } from './original-files.js'
import { openDatabase } from './prepare.js'

/** How often the files are looked at although nothing is asked, in milliseconds. */
const LOOK = 1000
/** After how many of these looks a thread looks whether the process of the next one is dead. */
const LOOKS_PER_VISIT = 5

/** A box of this thread. */
export interface LocalBox {
  /** Takes a hint, which it ignores if it is not about it. */
  receive(hint: Hint): void
  /** Frees all that a session had. Rejects as `Engine.submit`, with ClosedError if this box closes. */
  revoke(session: string): Promise<unknown>
  /** The files were replaced: no grant of the box is certain any more. */
  ended(reason: UnavailableError): void
}

/** The folders that boxes of this thread use, by path. */
const folders = new Map<string, Promise<OpenFolder>>()

/** The files and the socket of a folder. */
interface OpenedParts {
  readonly database: Database
  readonly openLock: OpenLock
  readonly mailbox: Mailbox
  readonly boxes: Map<string, LocalBox>
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
  readonly deaths: DeathWatch
  /** The boxes of this thread that have joined, by session. */
  readonly boxes: Map<string, LocalBox>
  readonly #sqlite: Sqlite
  readonly #openLock: OpenLock
  readonly #forget: () => void
  readonly #clock: Clock
  #entered = 0
  #look: Timer | undefined
  #looks = 0
  #isClosed = false
  /** Whether others know a session of this thread that could not leave. */
  #hasRemains = false

  private constructor(parts: FolderParts, clock: Clock) {
    const { machine, sqlite, database, openLock, mailbox, boxes, forget } = parts
    this.machine = machine
    this.database = database
    this.state = new FileState(database.connection)
    this.mailbox = mailbox
    this.boxes = boxes
    this.deaths = this.#watchDeaths()
    this.#clock = clock
    this.#sqlite = sqlite
    this.#openLock = openLock
    this.#forget = forget
    database.rolledBack = () => this.state.forget()
    this.#lookLater()
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
      // The files were replaced before the first box entered.
      if (opened.#entered === 0) await opened.#close()
    }
  }

  static #open(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenFolder> {
    const forget = (): void => forgetFolder(path, opening)
    const opening = openParts(path, machine, sqlite, clock).then(
      parts => new OpenFolder({ ...parts, machine, sqlite, forget }, clock),
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
    if (--this.#entered === 0) await this.#close()
  }

  /** Ends all boxes if the files are known to be replaced. */
  endIfReplaced(): void {
    const { replaced } = this.database.files
    if (replaced) for (const box of [...this.boxes.values()]) box.ended(replaced)
  }

  /**
   * Reads values outside of a transaction: one statement sees one moment by itself, and needs no turn among the writers.
   * Undefined when a writer was killed and the log must be repaired first, which takes a turn.
   */
  readAlone<T>(work: (state: FileState) => T): T | undefined {
    try {
      this.database.check()
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
      at: address => database.run(() => state.sessionsAt(address)),
      remove: session => this.#remove(session),
      wake: (session, id) => boxes.get(session)?.receive({ type: 'wake', about: id }),
    })
  }

  /** Frees all that a dead session had, through any box that stays open for so long. */
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

  #lookLater(): void {
    this.#look = this.#clock.after(LOOK, () => this.#lookAtFiles(), false)
  }

  /** Others may use new files under the same path as soon as the old ones are gone, so the grants end, too. */
  #lookAtFiles(): void {
    try {
      this.database.check()
    } catch {
      this.endIfReplaced()
    }
    // The system may answer later, for example when the folder can be entered again.
    if (this.database.files.replaced) return
    this.#lookLater()
    if (++this.#looks % LOOKS_PER_VISIT === 0) void this.#visitNext()
  }

  /**
   * Frees what dead sessions had, although no other box waits for their keys: those of the threads from this one up to
   * the next one that lives. So each dead thread has one that looks after it, and each looks at one living. Never
   * rejects.
   */
  async #visitNext(): Promise<void> {
    let visited: string | undefined
    for (;;) {
      const next = this.#addressAfterOwn()
      // It lives if it is still there.
      if (next === undefined || next === visited) return
      await this.deaths.visit([next])
      visited = next
    }
  }

  /** Undefined if this thread is alone, or if that can't be read now. */
  #addressAfterOwn(): string | undefined {
    try {
      return this.readAlone(state => state.addressAfter(this.mailbox.address))
    } catch {
      return undefined
    }
  }

  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#forget()
    this.#look?.cancel()
    this.deaths.stop()
    await (this.#hasRemains ? this.mailbox.abandon() : this.mailbox.close())
    await closeFiles(this.#sqlite, this.database, this.#openLock)
  }

  /** False if a new box must open the folder itself, as if it were in a process of its own. */
  #enter(): boolean {
    const isUsable =
      !this.#isClosed && !this.database.hasFailed && replacedOf(this.database.files.all) === undefined
    if (isUsable) this.#entered++
    return isUsable
  }
}

function forgetFolder(path: string, opening: Promise<OpenFolder>): void {
  if (folders.get(path) === opening) folders.delete(path)
}

async function openParts(path: string, machine: Machine, sqlite: Sqlite, clock: Clock): Promise<OpenedParts> {
  const { database, openLock } = await openDatabase(sqlite, path, machine, clock)
  try {
    const boxes = new Map<string, LocalBox>()
    const mailbox = await Mailbox.open(path, message => receive(message, boxes), clock)
    return { database, openLock, mailbox, boxes }
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
function receive(message: string, boxes: ReadonlyMap<string, LocalBox>): void {
  const space = message.indexOf(' ')
  const type = message.slice(0, space)
  if (type !== 'wake' && type !== 'lost' && type !== 'changed') return
  for (const box of boxes.values()) box.receive({ type, about: message.slice(space + 1) })
}
