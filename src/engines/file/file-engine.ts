import type { Clock, Timer } from '../../clock.js'
import type { Awaitable, CommitOutcome, Listener, Operation, SessionInfo } from '../../engine/contract.js'
import { purposeText } from '../../engine/kit/purpose-text.js'
import { StateEngine, type EngineState, type Hint, type Purpose } from '../../engine/kit/state-engine.js'
import type { Guarantees } from '../../guarantees.js'
import { DeathWatch } from './death-watch.js'
import { SqliteError } from './driver.js'
import { explained, SYNC } from './failures.js'
import { fileGuarantees } from './guarantees.js'
import { OpenFolder } from './open-folder.js'
import { refuseMoved } from './prepare.js'
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

/** What is open while the session lasts. */
interface Opened {
  readonly session: string
  readonly folder: OpenFolder
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
        const read = readAlone(opened.folder, work)
        if (read) return read
      }
      const { database, state, machine } = opened.folder
      const result = await database.run(() => {
        if (purpose.type === 'join') refuseMoved(database, machine)
        return state.change(work, purpose)
      })
      if (purpose.type === 'leave') this.#hasLeft = true
      return result
    } catch (error) {
      this.#endIfReplaced(opened)
      throw explained(this.name, purposeText(purpose), error)
    }
  }

  protected override notify(to: SessionInfo, hint: Hint): Awaitable<void> {
    if (!this.#opened) return
    const { receivers, mailbox } = this.#opened.folder
    // The state gives every session with its address.
    const { session, address } = to as AddressedMember
    const receive = receivers.get(session)
    if (receive) return queueMicrotask(() => receive(hint))
    return mailbox.send(address, `${hint.type} ${hint.about}`)
  }

  protected override settle(operation: Operation, outcome: unknown): Awaitable<void> {
    const { folder, deaths } = this.#opened!
    deaths.note(operation, outcome)
    if (operation.type !== 'commit' || !this.#options.durable) return
    if ((outcome as CommitOutcome).state !== 'committed') return
    return folder.database.sync().catch((error: unknown) => {
      throw explained(this.name, SYNC, error)
    })
  }

  async #join(info: SessionInfo, listener: Listener): Promise<void> {
    const folder = await OpenFolder.enter(this.#options.folder, this.clock)
    const { database, state, mailbox, receivers } = folder
    const { session } = info
    let mayBeKnown = false
    try {
      const deaths = this.#watchDeaths(session, listener, folder)
      this.#opened = { session, folder, deaths, listener }
      const member: AddressedMember = { ...info, address: mailbox.address }
      mayBeKnown = true
      await super.join(member, listener)
      receivers.set(session, hint => this.receive(hint))
      const sessions = await database.run(() => state.sessions())
      await deaths.visit(sessions)
      void mailbox.removeOrphans([...sessions.values()])
      this.#look = this.clock.after(LOOK, () => this.#lookAtFiles(session), false)
    } catch (error) {
      this.#opened = undefined
      receivers.delete(session)
      await folder.leave(mayBeKnown)
      throw error
    }
  }

  #watchDeaths(own: string, listener: Listener, { database, state, mailbox }: OpenFolder): DeathWatch {
    const sessions = {
      own,
      address: (session: string) => database.run(() => state.member(session)?.address),
      at: (address: string) => database.run(() => state.sessionsAt(address)),
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
      opened.folder.database.check()
    } catch {
      this.#endIfReplaced(opened)
    }
    // The system may answer later, for example when the folder can be entered again.
    if (opened.folder.database.files.replaced) return
    this.#look = this.clock.after(LOOK, () => this.#lookAtFiles(own), false)
    if (++this.#looks % LOOKS_PER_VISIT === 0) void visitNext(own, opened)
  }

  #endIfReplaced({ folder, listener }: Opened): void {
    const { replaced } = folder.database.files
    if (replaced) listener.ended(replaced)
  }

  async #leave(): Promise<void> {
    await super.leave()
    if (!this.#opened) return
    const { session, folder, deaths } = this.#opened
    this.#look?.cancel()
    deaths.stop()
    folder.receivers.delete(session)
    await folder.leave(!this.#hasLeft)
  }
}

/**
 * Frees what dead sessions had, although no other box waits for their keys: those from this session up to the next one
 * that lives. So each dead session has a box that looks after it, and each box looks at one living session. Never
 * rejects.
 */
async function visitNext(own: string, { folder, deaths }: Opened): Promise<void> {
  let visited: string | undefined
  for (;;) {
    const next = sessionAfter(own, folder)
    // It lives if it is still there.
    if (!next || next[0] === visited) return
    await deaths.visit(new Map([next]))
    visited = next[0]
  }
}

/** Undefined if this session is alone, or can't be read now. */
function sessionAfter(own: string, folder: OpenFolder): [session: string, address: string] | undefined {
  try {
    return readAlone(folder, () => folder.state.sessionAfter(own))
  } catch {
    return undefined
  }
}

/**
 * Reads values outside of a transaction: one statement sees one moment by itself, and needs no turn among the writers.
 * Undefined when a writer was killed and the log must be repaired first, which takes a turn.
 */
function readAlone<T>({ database, state }: OpenFolder, work: (state: EngineState) => T): T | undefined {
  try {
    database.check()
    return work(state)
  } catch (error) {
    if (error instanceof SqliteError && error.code === 'BUSY') return undefined
    throw error
  }
}
