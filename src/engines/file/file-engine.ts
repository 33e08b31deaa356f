import type { Clock, Timer } from '../../clock.js'
import { ClosedError, IndeterminateError, SignalboxError, UnavailableError } from '../../errors.js'
import type { Guarantees } from '../../guarantees.js'
import { reserve, type Reserve } from '../../limits/rules/reserve.js'
import { StateMachine, type AnyEffect } from '../../engine/state-machine.js'
import type {
  Engine,
  Listener,
  LockRequest,
  SessionInfo,
  Operation,
  OutcomeOf,
  Read,
  ReadOutcome,
  Reservation,
  RequestStatus,
} from '../../engine/contract.js'
import type { Database } from './database.js'
import type { Door } from './door.js'
import { loadSqlite, SqliteError } from './driver.js'
import { FileState } from './file-state.js'
import { DATABASE, prepareFolder } from './folder.js'
import { fileGuarantees } from './guarantees.js'
import { LimitRows } from './limit-rows.js'
import { thisMachine } from './machine.js'
import { Mailbox } from './mailbox.js'
import { openDatabase, refuseMoved } from './prepare.js'
import { Withdrawals } from '../../engine/kit/withdrawals.js'

/** How the file engine is used. */
export interface FileOptions {
  readonly folder: string
  /** Whether a commit settles only when it is on the disk. */
  readonly durable: boolean
}

/** How long an operation waits for the database: milliseconds. */
const PATIENCE = 10_000
/** How long a new box watches all others, to find those that died alone: milliseconds. */
const VISIT = 1000
/** Others are watched until there are so many, whether anybody waits behind them or not. */
const MOST_WATCHED = 64

/** What is there while the session lasts. */
interface Joined {
  readonly session: string
  readonly listener: Listener
  readonly database: Database
  readonly door: Door
  readonly mailbox: Mailbox
  readonly state: FileState
  readonly decisions: StateMachine
  readonly limits: LimitRows
}

/** The lock table in a SQLite database: all processes and threads of one machine that open the same folder. */
export class FileEngine implements Engine {
  readonly guarantees: Guarantees
  readonly tellsWanted = false
  readonly #options: FileOptions
  /**
   * The same in all processes. Leases in the folder go by it, although it may not count sleep: all processes of the
   * machine sleep at once, and a holder's own clock, which counts sleep, ends its grant no later.
   */
  readonly #clock: Clock
  readonly #ownClock: Clock
  #joined: Joined | undefined
  /** What the operation that is being carried out has to tell; read when it is done. */
  #effects: AnyEffect[] = []
  /** How many operations are under way, and who waits for the last of them. */
  #underway = 0
  #onIdle: (() => void) | undefined
  /** By session: what ends the watch over it. */
  readonly #watched = new Map<string, () => void>()
  #watchMost = MOST_WATCHED
  #visit: Timer | undefined
  /** By own request that waits: the sessions that stand before it. */
  readonly #behind = new Map<string, readonly string[]>()
  readonly #withdrawals = new Withdrawals()

  constructor(
    readonly name: string,
    options: FileOptions,
    clock: Clock,
    ownClock: Clock,
  ) {
    this.#options = options
    this.#clock = clock
    this.#ownClock = ownClock
    this.guarantees = fileGuarantees(options.durable)
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    const { folder } = this.#options
    const machine = await thisMachine()
    const sqlite = await loadSqlite()
    await this.#attempt('open', () => prepareFolder(folder))
    const { database, door } = await this.#attempt('open', () =>
      openDatabase(sqlite, folder, machine, this.#clock, PATIENCE),
    )
    let mailbox: Mailbox | undefined
    try {
      mailbox = await this.#attempt('open', () =>
        Mailbox.open(folder, message => this.#receive(message), this.#clock),
      )
      const state = new FileState(database.connection, member.session)
      const decisions = new StateMachine(state, effect => this.#effects.push(effect))
      const limits = new LimitRows(database.connection)
      const { session } = member
      const { address } = mailbox
      const joined = { session, listener, database, door, mailbox, state, decisions, limits }
      database.rolledBack = () => {
        state.forget()
        limits.forget()
      }
      const sessions = await this.#attempt('open', () =>
        database.run(() => {
          refuseMoved(database, machine)
          const others = state.sessions()
          state.join({ ...member, address })
          return others
        }),
      )
      this.#joined = joined
      this.#meet(joined, sessions)
    } catch (error) {
      await mailbox?.close()
      await database.close()
      door.leave()
      throw error
    }
  }

  async submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    if (operation.type === 'enqueue') this.#withdrawals.sent(operation.request)
    try {
      return await this.#whileJoined(joined => this.#run(joined, operation))
    } finally {
      if (operation.type === 'enqueue') this.#withdrawals.answered(operation.request)
    }
  }

  reserve(request: Reserve): Promise<Reservation> {
    return this.#whileJoined(({ database, limits }) =>
      this.#attempt('reserve', () => database.run(() => this.#reserve(limits, request))),
    )
  }

  withdraw(request: LockRequest): boolean {
    return this.#withdrawals.withdraw(request)
  }

  async leave(): Promise<void> {
    const joined = this.#joined
    if (!joined) return
    // Nothing new is taken on; what is under way gets its true answer.
    this.#joined = undefined
    if (this.#underway > 0) await new Promise<void>(resolve => (this.#onIdle = resolve))
    const { session, database, door, mailbox, state } = joined
    let left = false
    try {
      await this.#run(joined, { type: 'revoke', session })
      await database.run(() => state.leave(session))
      left = true
    } catch {
      // As on a full disk: what is left is freed as that of a dead session.
    }
    this.#visit?.cancel()
    for (const stop of this.#watched.values()) stop()
    await (left ? mailbox.close() : mailbox.abandon())
    await database.close().catch(() => undefined)
    door.leave()
  }

  async #whileJoined<T>(task: (joined: Joined) => Promise<T>): Promise<T> {
    const joined = this.#joined
    if (!joined) throw new ClosedError('the box was closed', { engine: this.name })
    this.#underway++
    try {
      return await task(joined)
    } finally {
      if (--this.#underway === 0) this.#onIdle?.()
    }
  }

  /** Runs inside the transaction. */
  #reserve(limits: LimitRows, request: Reserve): Reservation {
    const earliest = this.#ownClock.now()
    const now = this.#clock.now()
    const latest = this.#ownClock.now()
    const wall = Date.now()
    const { state, reserved, forgottenIn } = reserve(limits.get(request.limiter), request, now, wall)
    limits.put(request.limiter, state, wall + forgottenIn, wall)
    return { reserved, earliest, latest }
  }

  async #run<O extends Operation>(joined: Joined, operation: O): Promise<OutcomeOf<O>> {
    const { database, listener } = joined
    if (operation.type === 'read' && operation.ids.length === 0) {
      const read = await this.#attempt('read', async () => this.#readAlone(joined, operation))
      if (read) return read as OutcomeOf<O>
    }
    const done = await this.#attempt(operation.type, () =>
      database.run(() => this.#carryOut(joined, operation)),
    )
    const { outcome, effects, addresses } = done
    this.#settle(joined, operation, outcome)
    const telling = effects.flatMap(effect => this.#tell(joined, effect, addresses.get(effect.session)) ?? [])
    for (const effect of effects) {
      if (effect.type === 'wake' && effect.session !== joined.session) listener.reserved(effect.key)
    }
    if (operation.type === 'commit' && this.#options.durable && isCommitted(outcome)) {
      await this.#attempt('put on disk', () => database.sync())
    }
    // The caller may end the process as soon as it has the outcome.
    if (telling.length > 0) await Promise.all(telling)
    return outcome
  }

  /** One statement sees one moment by itself, and needs no turn among the writers. */
  #readAlone({ database, decisions }: Joined, read: Read): ReadOutcome | undefined {
    try {
      database.check()
      return decisions.decide(read, 0)
    } catch (error) {
      // After a writer was killed the log may have to be put in order first, which takes a turn.
      if (error instanceof SqliteError && error.code === 'BUSY') return undefined
      throw error
    }
  }

  /** Runs inside the transaction, perhaps twice: it changes nothing but the database and what `begin` resets. */
  #carryOut<O extends Operation>({ state, decisions }: Joined, operation: O): Done<O> {
    const effects: AnyEffect[] = (this.#effects = [])
    if (operation.type === 'enqueue' && this.#withdrawals.reached(operation.request)) {
      return { outcome: { state: 'busy' } as OutcomeOf<O>, effects, addresses: new Map() }
    }
    state.begin()
    const outcome = decisions.decide(operation, this.#clock.now())
    state.flush()
    const addresses = new Map(effects.map(({ session }) => [session, state.member(session)?.address]))
    return { outcome, effects, addresses }
  }

  /** Keeps in mind which own requests there are, and watches who stands before them. */
  #settle(joined: Joined, operation: Operation, outcome: OutcomeOf<Operation>): void {
    switch (operation.type) {
      case 'enqueue':
      case 'poll':
        return this.#standing(joined, operation.request.id, outcome as RequestStatus)
      case 'extendOrYield': {
        const standing = outcome as RequestStatus
        if (standing.state !== 'held' || standing.id !== operation.request.id)
          joined.state.forgetRequest(operation.request.id)
        return this.#standing(joined, operation.next.id, standing)
      }
      case 'cancel':
      case 'release':
        joined.state.forgetRequest(operation.request.id)
        this.#behind.delete(operation.request.id)
        return
      case 'commit':
        if (operation.guard && operation.release && isCommitted(outcome)) {
          joined.state.forgetRequest(operation.guard.request.id)
        }
        return
      default:
    }
  }

  #standing(joined: Joined, id: string, standing: RequestStatus): void {
    if (standing.state !== 'queued') {
      this.#behind.delete(id)
      if (standing.state === 'gone') joined.state.forgetRequest(id)
      return
    }
    this.#behind.set(id, standing.behind)
    for (const session of standing.behind) {
      if (session !== joined.session && !this.#watched.has(session)) this.#watch(joined, session)
    }
  }

  /** Watches those who are there for a moment: what somebody left who died alone is freed. */
  #meet(joined: Joined, sessions: readonly string[]): void {
    if (sessions.length === 0) return
    for (const session of sessions) this.#watch(joined, session)
    this.#visit = this.#clock.after(VISIT, () => this.#lookAway(), false)
  }

  /** Stops watching those behind whom nobody waits. */
  #lookAway(): void {
    const needed = new Set([...this.#behind.values()].flat())
    for (const [session, stop] of this.#watched) {
      if (needed.has(session)) continue
      stop()
      this.#watched.delete(session)
    }
    this.#watchMost = Math.max(MOST_WATCHED, 2 * this.#watched.size)
  }

  /** Watches a session, so that what it holds is freed as soon as it is known to be dead. */
  #watch(joined: Joined, session: string): void {
    // Connections are kept, because those who met once will meet again; but not all of them for ever.
    if (this.#watched.size >= this.#watchMost) this.#lookAway()
    this.#watched.set(session, () => undefined)
    const { database, state, mailbox } = joined
    const start = (address: string | undefined): void => {
      if (this.#joined !== joined) return
      if (address === undefined) void this.#bury(joined, session, undefined)
      else
        this.#watched.set(
          session,
          mailbox.watch(address, () => void this.#bury(joined, session, address)),
        )
    }
    database.run(() => state.member(session)?.address).then(start, () => this.#watched.delete(session))
  }

  /** Frees all that a dead session had. Whoever waited behind it looks anew who stands there now. */
  async #bury(joined: Joined, session: string, address: string | undefined): Promise<void> {
    this.#watched.delete(session)
    if (this.#joined !== joined) return
    const { database, state, mailbox, listener } = joined
    try {
      await this.submit({ type: 'revoke', session })
      await database.run(() => state.leave(session))
      if (address !== undefined) mailbox.remove(address)
    } catch {
      // Its leases free it all the same.
    }
    for (const [id, behind] of [...this.#behind]) if (behind.includes(session)) listener.wake(id)
  }

  /** @returns what settles when the hint can't be lost with this process; undefined when it can't be already */
  #tell(
    { session, listener, mailbox }: Joined,
    effect: AnyEffect,
    address: string | undefined,
  ): Promise<void> | undefined {
    const about = effect.type === 'changed' ? effect.key : effect.id
    if (effect.session === session) hint(listener, effect.type, about)
    else if (address !== undefined) return mailbox.send(address, `${effect.type} ${about}`)
    return undefined
  }

  #receive(message: string): void {
    const space = message.indexOf(' ')
    const type = message.slice(0, space)
    if (!this.#joined || (type !== 'wake' && type !== 'lost' && type !== 'changed')) return
    hint(this.#joined.listener, type, message.slice(space + 1))
  }

  /** Does something with the disk and says what went wrong in the words of the API. */
  async #attempt<T>(what: string, task: () => Promise<T>): Promise<T> {
    try {
      return await task()
    } catch (error) {
      throw error instanceof SignalboxError ? error : this.#explained(what, error)
    }
  }

  #explained(what: string, cause: unknown): Error {
    const context = { engine: this.name, cause }
    const { code, message } = cause as { code?: string; message: string }
    const reason = (code === undefined ? undefined : REASONS[code]) ?? message
    const text = `${what} failed on ${this.name}: ${reason}`
    // A transaction that fails is rolled back. Only what fails between the log and the disk may be there or not.
    const unclear = what === 'put on disk' || (cause instanceof SqliteError && cause.code === 'IOERR')
    return unclear ? new IndeterminateError(text, context) : new UnavailableError(text, context)
  }
}

/** One operation carried out: what came of it and who is to be told what, at which address. */
interface Done<O extends Operation> {
  readonly outcome: OutcomeOf<O>
  readonly effects: readonly AnyEffect[]
  readonly addresses: ReadonlyMap<string, string | undefined>
}

/** What SQLite and the system call it, in words. */
const REASONS: Readonly<Record<string, string>> = {
  BUSY: `another process held the database for more than ${PATIENCE} ms`,
  FULL: 'the disk is full',
  READONLY: 'the database can not be written',
  CANTOPEN: 'the database can not be opened; is the folder there, and may it be written?',
  NOTADB: `${DATABASE} is no SQLite database`,
  CORRUPT: `${DATABASE} is damaged`,
  EACCES: 'the folder may not be written',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'the path is not a folder',
  EEXIST: 'the path is a file, not a folder',
  ENOSPC: 'the disk is full',
}

function hint(listener: Listener, type: AnyEffect['type'], about: string): void {
  if (type === 'wake') listener.wake(about)
  else if (type === 'lost') listener.lost(about)
  else listener.changed(about)
}

function isCommitted(outcome: unknown): boolean {
  return (outcome as { state?: string }).state === 'committed'
}
