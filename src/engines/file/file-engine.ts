import type { Clock, Timer } from '../../clock.js'
import type { Awaitable, CommitOutcome, Listener, Operation, SessionInfo } from '../../engine/contract.js'
import { purposeText } from '../../engine/kit/purpose-text.js'
import { StateEngine, type EngineState, type Hint, type Purpose } from '../../engine/kit/state-engine.js'
import type { Guarantees } from '../../guarantees.js'
import type { Database } from './database.js'
import { DeathWatch } from './death-watch.js'
import type { OpenLock } from './open-lock.js'
import { loadSqlite, SqliteError, type Sqlite } from './driver.js'
import { explained, SYNC } from './failures.js'
import { FileState } from './file-state.js'
import { prepareFolder } from './folder.js'
import { fileGuarantees } from './guarantees.js'
import type { Machine } from '../../linux-machine.js'
import { thisMachine } from './machine.js'
import { Mailbox } from './mailbox.js'
import { openDatabase, refuseMoved } from './prepare.js'
import type { AddressedMember } from './session-rows.js'

/** How the file engine is used. */
export interface FileOptions {
  readonly folder: string
  /** Whether a commit settles only when it is on the disk. */
  readonly durable: boolean
}

/** How often the files are looked at although nothing is asked, in milliseconds. */
const LOOK = 1000
/** After how many of these looks a box looks whether the process of the next session is dead. */
const LOOKS_PER_VISIT = 5

/** The files and sockets that are open while the session lasts. */
interface Opened {
  readonly sqlite: Sqlite
  readonly machine: Machine
  readonly database: Database
  readonly openLock: OpenLock
  readonly mailbox: Mailbox
  readonly state: FileState
  readonly deaths: DeathWatch
  readonly listener: Listener
}

/** The state in a SQLite database, for all processes and threads of one machine that open the same folder. */
export class FileEngine extends StateEngine {
  readonly guarantees: Guarantees
  readonly canSteal = true
  readonly #options: FileOptions
  #opened: Opened | undefined
  #hasLeft = false
  #look: Timer | undefined
  #looks = 0
  #leaving: Promise<void> | undefined

  /**
   * @param clock the same in all processes. Leases in the folder use it, although it may not count sleep: all processes
   * of the machine sleep at once, and a holder's own clock, which counts sleep, ends its grant no later.
   */
  constructor(
    readonly name: string,
    options: FileOptions,
    clock: Clock,
    ownClock: Clock,
  ) {
    super(clock, ownClock)
    this.#options = options
    this.guarantees = fileGuarantees(options.durable)
  }

  override async join(info: SessionInfo, listener: Listener): Promise<void> {
    try {
      await this.#join(info, listener)
    } catch (error) {
      throw explained(this.name, purposeText({ type: 'join' }), error)
    }
  }

  override leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  protected override async transact<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    const opened = this.#opened!
    try {
      if (purpose.type === 'list' || (purpose.type === 'read' && purpose.ids.length === 0)) {
        const read = readAlone(opened, work)
        if (read) return read
      }
      const result = await opened.database.run(() => {
        if (purpose.type === 'join') refuseMoved(opened.database, opened.machine)
        return opened.state.change(work, purpose)
      })
      if (purpose.type === 'leave') this.#hasLeft = true
      return result
    } catch (error) {
      this.#endIfReplaced(opened)
      throw explained(this.name, purposeText(purpose), error)
    }
  }

  protected override notify(to: SessionInfo, { type, about }: Hint): Awaitable<void> {
    // The state gives every session with its address.
    return this.#opened?.mailbox.send((to as AddressedMember).address, `${type} ${about}`)
  }

  protected override settle(operation: Operation, outcome: unknown): Awaitable<void> {
    const { database, deaths } = this.#opened!
    deaths.note(operation, outcome)
    if (operation.type !== 'commit' || !this.#options.durable) return
    if ((outcome as CommitOutcome).state !== 'committed') return
    return database.sync().catch((error: unknown) => {
      throw explained(this.name, SYNC, error)
    })
  }

  async #join(info: SessionInfo, listener: Listener): Promise<void> {
    const { folder } = this.#options
    const machine = await thisMachine()
    const sqlite = await loadSqlite()
    await prepareFolder(folder)
    const { database, openLock } = await openDatabase(sqlite, folder, machine, this.clock)
    let mailbox: Mailbox | undefined
    let mayBeKnown = false
    try {
      mailbox = await Mailbox.open(folder, message => this.#read(message), this.clock)
      const state = new FileState(database.connection)
      database.rolledBack = () => state.forget()
      const deaths = this.#watchDeaths(info.session, listener, database, state, mailbox)
      this.#opened = { sqlite, machine, database, openLock, mailbox, state, deaths, listener }
      const member: AddressedMember = { ...info, address: mailbox.address }
      mayBeKnown = true
      await super.join(member, listener)
      const sessions = await database.run(() => state.sessions())
      await deaths.visit(sessions)
      void mailbox.removeOrphans([...sessions.values()])
      this.#look = this.clock.after(LOOK, () => this.#lookAtFiles(info.session), false)
    } catch (error) {
      this.#opened = undefined
      await end(mailbox, mayBeKnown, sqlite, database, openLock)
      throw error
    }
  }

  #watchDeaths(
    own: string,
    listener: Listener,
    database: Database,
    state: FileState,
    mailbox: Mailbox,
  ): DeathWatch {
    const sessions = {
      own,
      address: (session: string) => database.run(() => state.member(session)?.address),
      remove: async (session: string) => {
        await this.submit({ type: 'revoke', session })
        await database.run(() => state.leave(session))
      },
      wake: (id: string) => listener.wake(id),
    }
    return new DeathWatch(mailbox, sessions)
  }

  /** Others may use new files under the same path as soon as the old ones are gone, so the grants end, too. */
  #lookAtFiles(own: string): void {
    const opened = this.#opened!
    try {
      opened.database.check()
    } catch {
      this.#endIfReplaced(opened)
    }
    // The system may answer later, for example when the folder can be entered again.
    if (opened.database.files.replaced) return
    this.#look = this.clock.after(LOOK, () => this.#lookAtFiles(own), false)
    if (++this.#looks % LOOKS_PER_VISIT === 0) void visitNext(own, opened)
  }

  #endIfReplaced({ database, listener }: Opened): void {
    const { replaced } = database.files
    if (replaced) listener.ended(replaced)
  }

  /** Passes to the box the hint that another one has sent. */
  #read(message: string): void {
    const space = message.indexOf(' ')
    const type = message.slice(0, space)
    if (type === 'wake' || type === 'lost' || type === 'changed')
      this.receive({ type, about: message.slice(space + 1) })
  }

  async #leave(): Promise<void> {
    await super.leave()
    if (!this.#opened) return
    const { sqlite, database, openLock, mailbox, deaths } = this.#opened
    this.#look?.cancel()
    deaths.stop()
    await end(mailbox, !this.#hasLeft, sqlite, database, openLock)
  }
}

/**
 * Frees what dead sessions had, although no other box waits for their keys: those from this session up to the next one
 * that lives. So each dead session has a box that looks after it, and each box looks at one living session. Never
 * rejects.
 */
async function visitNext(own: string, opened: Opened): Promise<void> {
  let visited: string | undefined
  for (;;) {
    const next = sessionAfter(own, opened)
    // It lives if it is still there.
    if (!next || next[0] === visited) return
    await opened.deaths.visit(new Map([next]))
    visited = next[0]
  }
}

/** Undefined if this session is alone, or can't be read now. */
function sessionAfter(own: string, opened: Opened): [session: string, address: string] | undefined {
  try {
    return readAlone(opened, () => opened.state.sessionAfter(own))
  } catch {
    return undefined
  }
}

/**
 * Reads values outside of a transaction: one statement sees one moment by itself, and needs no turn among the writers.
 * Undefined when a writer was killed and the log must be repaired first, which takes a turn.
 */
function readAlone<T>({ database, state }: Opened, work: (state: EngineState) => T): T | undefined {
  try {
    database.check()
    return work(state)
  } catch (error) {
    if (error instanceof SqliteError && error.code === 'BUSY') return undefined
    throw error
  }
}

/**
 * Closes all that a session has open, whatever of it fails.
 * @param isKnown whether others know the session, as one that could not leave on a full disk. They find it dead, and
 * free what it had.
 */
async function end(
  mailbox: Mailbox | undefined,
  isKnown: boolean,
  sqlite: Sqlite,
  database: Database,
  openLock: OpenLock,
): Promise<void> {
  try {
    await (isKnown ? mailbox?.abandon() : mailbox?.close())
  } finally {
    await close(sqlite, database, openLock)
  }
}

/** The open lock first: SQLite may delete the log with the last box, and who then enters must not look for it. */
async function close(sqlite: Sqlite, database: Database, openLock: OpenLock): Promise<void> {
  // libsql writes to a file some time after closing it. New files must not be used before that.
  if (sqlite.name !== 'libsql' || !database.files.replaced) openLock.leave()
  await database.close().catch(() => undefined)
}
