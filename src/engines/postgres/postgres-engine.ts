import type { Clock, Timer } from '../../clock.js'
import type {
  Awaitable,
  Commit,
  CommitOutcome,
  Engine,
  Granted,
  Inspect,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  RequestReport,
  RequestStatus,
  Reservation,
  SessionInfo,
} from '../../engine/contract.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import { ClosedError } from '../../errors.js'
import type { Guarantees } from '../../guarantees.js'
import type { KeptLimiter } from '../../engine/limits/report.js'
import type { ReservePermits } from '../../engine/limits/reserve-permits.js'
import { Calls, worded } from './calls.js'
import { callersTransaction } from './clients/callers-transaction.js'
import { arrayText, type SqlClient } from './clients/sql-client.js'
import { explained } from './failures.js'
import { postgresGuarantees } from './guarantees.js'
import { Hints } from './hints.js'
import { Lanes } from './lanes.js'
import { Limiters } from './limiters.js'
import { keyOf, rowName } from './names.js'
import { outcomeOf, reportsOf, type Json, type Told } from './outcomes.js'
import { OwnRequests } from './own-requests.js'
import { provideSchema } from './provide-schema.js'
import { statementsOf, type Statements } from './statements.js'
import { WATCH_LIFE, type ServerOperation } from './words.js'

/** A box that receives no messages looks for what is reserved for it so often: milliseconds. */
const DEAF_LOOK = 100
/** It reads what it watches so often: milliseconds. */
const DEAF_WATCH = 1000
/** A box hands a lock on among its own callers for so long before it asks for other waiters again: milliseconds. */
const ALONE_FOR = 2

/** The lock table as functions of a PostgreSQL database: each operation is decided there, by one statement. */
export class PostgresEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  /** Undefined where the locks could not be taken while a transaction of the caller's goes on. */
  readonly commitWithin?: (commit: Commit, transaction: object) => Promise<CommitOutcome>
  readonly #sql: SqlClient
  readonly #schema: string
  readonly #clock: Clock
  readonly #statements: Statements
  readonly #calls: Calls
  readonly #lanes: Lanes
  readonly #hints: Hints
  readonly #limiters: Limiters
  readonly #requests = new OwnRequests()
  readonly #watched = new Set<string>()
  readonly #timers = new Set<Timer>()
  #info: SessionInfo | undefined
  #listener: Listener | undefined
  #isLooking = false
  #leaving: Promise<void> | undefined

  constructor(sql: SqlClient, schema: string, clock: Clock) {
    this.name = sql.name
    this.guarantees = sql.isEmbedded ? { ...postgresGuarantees, scope: 'thread' } : postgresGuarantees
    this.#sql = sql
    this.#schema = schema
    this.#clock = clock
    this.#statements = statementsOf(schema)
    this.#calls = new Calls(this.#statements, () => this.#info!)
    this.#lanes = new Lanes(this.#calls, sql.query, clock, (told, isNotified) =>
      this.#notify(told, isNotified),
    )
    this.#limiters = new Limiters(sql, this.#statements, clock)
    const hearer = {
      heard: ({ type, about }: Hint) => this.#listener?.[type](about),
      missed: () => this.#missed(),
      listens: () => this.#hasUseForHints(),
    }
    this.#hints = new Hints(sql, this.#statements, hearer, clock)
    if (!sql.isEmbedded) this.commitWithin = (commit, transaction) => this.#commitWithin(commit, transaction)
  }

  async join(info: SessionInfo, listener: Listener): Promise<void> {
    this.#info = info
    try {
      await provideSchema(this.#sql, this.#schema)
    } catch (error) {
      await this.#close()
      throw explained(this.name, 'open', error)
    }
    this.#hints.open(info.session)
    this.#listener = listener
    this.#every(WATCH_LIFE / 3, () => this.#watchOn())
    this.#every(DEAF_WATCH, () => {
      if (this.#hints.isDeaf && this.#watched.size > 0) listener.missed()
    })
    this.#every(DEAF_LOOK, () => {
      if (this.#hints.isDeaf) void this.#look()
    })
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  async submit(operation: Operation): Promise<unknown> {
    if (!this.#listener) throw this.#closed()
    try {
      switch (operation.type) {
        case 'inspect':
          return await this.#inspect(operation)
        case 'revoke': {
          const rows = JSON.parse(
            (await this.#sql.query(this.#statements.rowsOf, [operation.session])) as string,
          ) as readonly string[]
          return rows.length === 0 ? 0 : await this.#run({ ...operation, rows })
        }
        case 'watch':
          this.#watched.add(operation.key)
          break
        case 'unwatch':
          this.#watched.delete(operation.key)
          break
        default:
      }
      return await this.#run(operation)
    } catch (error) {
      throw explained(this.name, operation.type, error)
    }
  }

  withdraw(request: LockRequest): boolean {
    return this.#lanes.withdraw(request)
  }

  async reservePermits(request: ReservePermits): Promise<Reservation> {
    if (!this.#listener) throw this.#closed()
    try {
      return await this.#limiters.reservePermits(request)
    } catch (error) {
      throw explained(this.name, 'reservePermits', error)
    }
  }

  async limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    if (!this.#listener) throw this.#closed()
    try {
      return await this.#limiters.list(isMeant)
    } catch (error) {
      throw explained(this.name, 'listing limiters', error)
    }
  }

  async wallClock(): Promise<number> {
    try {
      return Number(await this.#sql.query(this.#statements.clock, [])) * 1000
    } catch (error) {
      throw explained(this.name, 'reading the clock', error)
    }
  }

  async fence({ request, number }: Granted, transaction: object): Promise<boolean> {
    const { query } = callersTransaction(this.name, transaction)
    // Without begin, each statement is a transaction of its own, and binds nothing.
    await query(this.#statements.begun, [])
    const [home] = request.claims.map(({ key }) => rowName('lock', key))
    const exclusive = request.claims.filter(({ mode }) => mode === 'exclusive')
    const rows = exclusive.map(({ key }) => rowName('lock', key))
    return (
      (await query(this.#statements.fence, [arrayText(rows), home!, request.id, String(number)])) === 'true'
    )
  }

  leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  async #run(operation: ServerOperation): Promise<unknown> {
    this.#requests.sending(operation)
    if (operation.type !== 'read' && operation.type !== 'commit') this.#hints.start()
    const outcome = outcomeOf(operation, await this.#lanes.run(operation))
    this.#requests.settled(operation, outcome)
    if (operation.type !== 'extendOrYield') return outcome
    const status = outcome as RequestStatus
    if (status.state !== 'held' || status.id !== operation.request.id) return status
    // A grant was extended if no other request waits. Without a message, that is known for a moment.
    this.#clock.after(ALONE_FOR, () => this.#listener?.contended(operation.request.id), false)
    return { ...status, isUncontended: true }
  }

  async #inspect({ prefix, exact = false }: Inspect): Promise<RequestReport[]> {
    const name = exact ? rowName('lock', prefix) : `lock/${prefix}`
    const text = await this.#sql.query(this.#statements.inspect, [name, String(exact)])
    const reports = reportsOf(JSON.parse(text as string) as Json).filter(({ key }) => key.startsWith(prefix))
    return reports.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  async #commitWithin(commit: Commit, transaction: object): Promise<CommitOutcome> {
    const { query } = callersTransaction(this.name, transaction)
    // The fence has bound its locks.
    const unguarded: Commit = { ...commit, guard: undefined, release: false }
    try {
      const rows = commit.writes
        .filter(({ value }) => value !== undefined)
        .map(({ key }) => rowName('value', key))
      // Rows that are made by a transaction that goes on would keep all others waiting that look for them. One with a
      // snapshot sees them if the fence is its first statement.
      if (rows.length > 0) await this.#sql.query(this.#statements.prepareValues, [arrayText(rows)])
      if (commit.guard && !(await this.fence(commit.guard, transaction))) return { state: 'lost' }
      const { answers, told } = await this.#calls.decide([worded(unguarded)], query, {
        isWithin: true,
        waits: true,
      })
      for (const each of told) {
        const hint = hintOf(each)
        if (hint) await this.#hints.tellWithin(query, each[1], hint)
      }
      return outcomeOf(unguarded, answers[0]!) as CommitOutcome
    } catch (error) {
      throw explained(this.name, 'commit', error)
    }
  }

  /**
   * Passes on what has happened to the requests and values of sessions. The server has notified others, or this does.
   */
  #notify(told: readonly Told[], isNotified: boolean): Promise<void> | undefined {
    const underway: Promise<void>[] = []
    for (const each of told) {
      const [type, session] = each
      const hint = hintOf(each)
      if (session === this.#info!.session) {
        if (hint) this.#listener?.[hint.type](hint.about)
        else this.#listener?.missed()
        continue
      }
      if (!isNotified) underway.push(this.#hints.tell(session, hint ?? { type: 'changed', about: '\n' }))
      const key = type === 'wake' ? keyOf(each[3]) : undefined
      if (key !== undefined) this.#listener?.reserved(key)
    }
    return underway.length === 0 ? undefined : Promise.all(underway).then(() => undefined)
  }

  #hasUseForHints(): boolean {
    return this.#watched.size > 0 || this.#requests.all.length > 0
  }

  #missed(): void {
    for (const { id } of this.#requests.waiting) this.#listener?.wake(id)
    this.#listener?.missed()
  }

  /** Looks for what is reserved for this box, by one statement that changes nothing. */
  async #look(): Promise<void> {
    const { waiting } = this.#requests
    if (waiting.length === 0 || this.#isLooking) return
    this.#isLooking = true
    try {
      const names = waiting.map(({ claims }) => rowName('lock', claims[0]!.key))
      const ids = waiting.map(({ id }) => id)
      const text = await this.#sql.query(this.#statements.look, [arrayText(names), arrayText(ids)])
      for (const id of JSON.parse(text as string) as readonly string[]) this.#listener?.wake(id)
    } catch {
      // Its next look follows.
    } finally {
      this.#isLooking = false
    }
  }

  #every(period: number, task: () => void): void {
    let timer: Timer | undefined
    const set = (): void => {
      if (timer) this.#timers.delete(timer)
      timer = this.#clock.after(
        period,
        () => {
          task()
          set()
        },
        false,
      )
      this.#timers.add(timer)
    }
    set()
  }

  /** Is notified of changes for a further while. */
  #watchOn(): void {
    const { session } = this.#info!
    for (const key of this.#watched) this.#lanes.run({ type: 'watch', session, key }).catch(() => undefined)
  }

  /** Gives back all that the session has. What can't be given back ends with its lease. */
  async #leave(): Promise<void> {
    const hasJoined = this.#listener !== undefined
    this.#listener = undefined
    for (const timer of this.#timers) timer.cancel()
    if (hasJoined) {
      const { session } = this.#info!
      await Promise.all([this.#lanes.idle(), this.#limiters.idle()])
      const cancelled = this.#requests.all.map(request => this.#lanes.run({ type: 'cancel', request }))
      const unwatched = [...this.#watched].map(key => this.#lanes.run({ type: 'unwatch', session, key }))
      await Promise.allSettled([...cancelled, ...unwatched])
    }
    await this.#close()
  }

  async #close(): Promise<void> {
    await this.#hints.close().catch(() => undefined)
    await this.#sql.close().catch(() => undefined)
  }

  #closed(): ClosedError {
    return new ClosedError('the box was closed', { engine: this.name })
  }
}

/** The hint for a session; undefined where its key is known by a hash alone. */
function hintOf(told: Told): Hint | undefined {
  if (told[0] !== 'changed') return { type: told[0], about: told[2] }
  const key = keyOf(told[2])
  return key === undefined ? undefined : { type: 'changed', about: key }
}
