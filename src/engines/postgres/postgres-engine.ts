import type { Clock, Timer } from '../../clock.js'
import type {
  Awaitable,
  Commit,
  CommitOutcome,
  ExtendOrYield,
  Granted,
  Listener,
  Operation,
  OutcomeOf,
  RequestReport,
  RequestStatus,
  SessionInfo,
} from '../../engine/contract.js'
import {
  StateEngine,
  type EngineState,
  type Hint,
  type Moment,
  type Purpose,
} from '../../engine/kit/state-engine.js'
import { StateMachine, type ChangedEffect } from '../../engine/state-machine.js'
import type { Guarantees } from '../../guarantees.js'
import { Changes, SLACK } from './changes.js'
import { callersTransaction } from './clients/callers-transaction.js'
import { arrayText, type SqlClient, type StatementRunner } from './clients/sql-client.js'
import { explained } from './failures.js'
import { postgresGuarantees } from './guarantees.js'
import { Hints } from './hints.js'
import { provideSchema } from './provide-schema.js'
import { ServerClock } from './server-clock.js'
import { rowName } from './names.js'
import { statementsOf, type Statements } from './statements.js'
import { WATCH_LIFE } from './value-row.js'

/** A waiter that hears nothing looks again within so many milliseconds. */
const DEAF_LOOK = 100
/** A box hands a lock on among its own callers for so long before it asks for other waiters again: milliseconds. */
const ALONE_FOR = 2
/** A box that hears nothing reads what it watches so often: milliseconds. */
const DEAF_WATCH = 1000
/** Rows that have no effect any more are deleted when they are so old: milliseconds. */
const SWEPT_AGE = 600_000
/** A box looks for them so often, among so many rows at a time: milliseconds. */
const SWEEP_EVERY = 300_000
const SWEPT_TOGETHER = 10_000

/**
 * The state in rows of PostgreSQL. What a tick brings is decided here, by the rows as they were last seen, and written
 * by one statement that compares them and sets them.
 */
export class PostgresEngine extends StateEngine {
  readonly name: string
  readonly guarantees: Guarantees
  /** Undefined where the locks could not be taken while a transaction of the caller's goes on. */
  readonly commitWithin?: (commit: Commit, transaction: object) => Promise<CommitOutcome>
  readonly #sql: SqlClient
  readonly #schema: string
  readonly #ownClock: Clock
  readonly #statements: Statements
  readonly #serverClock: ServerClock
  readonly #changes: Changes
  readonly #hints: Hints
  readonly #watched = new Set<string>()
  readonly #timers: Timer[] = []
  #info: SessionInfo | undefined
  #listener: Listener | undefined
  #leaving: Promise<void> | undefined
  #sweptTo = ''

  constructor(sql: SqlClient, schema: string, clock: Clock) {
    super(clock)
    this.name = sql.name
    this.guarantees = sql.isEmbedded ? { ...postgresGuarantees, scope: 'thread' } : postgresGuarantees
    this.#sql = sql
    this.#schema = schema
    this.#ownClock = clock
    this.#statements = statementsOf(schema)
    this.#serverClock = new ServerClock(clock)
    this.#changes = this.#changesOver(sql, false)
    const hearer = {
      heard: (hint: Hint) => this.receive(hint),
      told: (id: number, version: number, data: string) => this.#changes.tell(id, version, data),
      missed: () => this.#listener?.missed(),
    }
    this.#hints = new Hints(sql, this.#statements, hearer, clock)
    if (!sql.isEmbedded) this.commitWithin = (commit, transaction) => this.#commitWithin(commit, transaction)
  }

  override async join(info: SessionInfo, listener: Listener): Promise<void> {
    this.#info = info
    try {
      await provideSchema(this.#sql, this.#schema)
      await this.#hints.open(info.session)
      // A pooler that gives each statement another connection refuses transactions.
      if (this.#hints.isDeaf) await this.#sql.transaction(async () => undefined)
      await super.join(info, listener)
    } catch (error) {
      await this.#close()
      throw explained(this.name, 'open', error)
    }
    this.#listener = listener
    this.#every(WATCH_LIFE / 3, () => this.#watchOn())
    this.#every(DEAF_WATCH, () => {
      if (this.#hints.isDeaf) listener.missed()
    })
    this.#every(SWEEP_EVERY * (0.5 + Math.random()), () => this.#sweep())
  }

  override submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  override async submit(operation: Operation): Promise<unknown> {
    if (operation.type === 'watch') this.#watched.add(operation.key)
    if (operation.type === 'unwatch') this.#watched.delete(operation.key)
    const outcome = await super.submit(withSlack(operation))
    if (operation.type === 'inspect') return withoutSlack(outcome as readonly RequestReport[])
    if (operation.type === 'extendOrYield') return this.#extended(operation, outcome as RequestStatus)
    return this.#withLooks(outcome as RequestStatus | undefined)
  }

  /** A grant was extended if no other request waits. Without a message, that is known for a moment. */
  #extended({ request }: ExtendOrYield, status: RequestStatus): RequestStatus {
    if (status.state !== 'held' || status.id !== request.id) return this.#withLooks(status)
    this.#ownClock.after(ALONE_FOR, () => this.#listener?.wanted(request.id), false)
    return { ...status, isAlone: true }
  }

  /** The status as a waiter needs it that hears nothing. */
  #withLooks<Status extends RequestStatus | undefined>(status: Status): Status {
    if (!this.#hints.isDeaf || status?.state !== 'queued') return status
    return { ...status, lookAgain: Math.min(status.lookAgain, DEAF_LOOK) }
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
    // The first of them is the row that has the request.
    const exclusive = request.claims.filter(({ mode }) => mode === 'exclusive')
    const rows = exclusive.map(({ key }) => rowName('lock', key))
    return (await query(this.#statements.fence, [arrayText(rows), request.id, String(number)])) === 'true'
  }

  async #commitWithin(commit: Commit, transaction: object): Promise<CommitOutcome> {
    if (commit.guard && !(await this.fence(commit.guard, transaction))) return { state: 'lost' }
    const sql = callersTransaction(this.name, transaction)
    // The fence has bound its locks.
    const unguarded: Commit = { ...commit, guard: undefined, release: false }
    try {
      // Rows that are made by a transaction that goes on would keep all others waiting that look for them.
      await this.#changes.run(() => undefined, unguarded)
      const changes = this.#changesOver(sql, true)
      const changed: ChangedEffect[] = []
      const outcome = await changes.run(state => {
        changed.length = 0
        const machine = new StateMachine(state, effect => changed.push(effect as ChangedEffect))
        return machine.decide(unguarded, changes.moment.at)
      }, unguarded)
      for (const { session, key } of changed)
        await this.#hints.tellWithin(sql.query, session, { type: 'changed', about: key })
      return outcome
    } catch (error) {
      throw explained(this.name, 'commit', error)
    }
  }

  override leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  protected override async transact<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    if (purpose.type === 'join') return undefined as T
    try {
      return await this.#changes.run(work, purpose)
    } catch (error) {
      throw explained(this.name, purpose.type, error)
    }
  }

  protected override notify({ session }: SessionInfo, hint: Hint): Promise<void> {
    return this.#hints.tell(
      session,
      hint,
      hint.type === 'wake' ? this.#changes.rowWith(hint.about) : undefined,
    )
  }

  protected override now(): number {
    return this.#changes.moment.at
  }

  protected override moment(): Moment {
    const { at, earliest, latest } = this.#changes.moment
    return { now: at, wall: at, earliest, latest }
  }

  #changesOver(sql: StatementRunner, isWithin: boolean): Changes {
    return new Changes(sql, this.#statements, () => this.#info!, this.#ownClock, this.#serverClock, isWithin)
  }

  #every(period: number, task: () => void): void {
    const place = this.#timers.length
    const set = (): void => {
      this.#timers[place] = this.#ownClock.after(
        period,
        () => {
          task()
          set()
        },
        false,
      )
    }
    set()
  }

  /** Is told of changes for a further while. */
  #watchOn(): void {
    const { session } = this.#info!
    for (const key of this.#watched) {
      const watching = super.submit({ type: 'watch', session, key })
      if (watching instanceof Promise) watching.catch(() => undefined)
    }
  }

  /** Goes on where the last sweep ended. Another one follows a sweep that fails. */
  #sweep(): void {
    const values = [this.#sweptTo, String(SWEPT_TOGETHER), String(SWEPT_AGE)]
    this.#sql.query(this.#statements.sweep, values).then(
      last => (this.#sweptTo = (last as string | null) ?? ''),
      () => undefined,
    )
  }

  async #leave(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await super.leave()
    await this.#close()
  }

  async #close(): Promise<void> {
    await this.#hints.close().catch(() => undefined)
    await this.#sql.close().catch(() => undefined)
  }
}

/** The operation with the lease that the server has to keep. See {@link SLACK}. */
function withSlack(operation: Operation): Operation {
  return 'lease' in operation ? { ...operation, lease: operation.lease + SLACK } : operation
}

/** Requests as their holders see them. */
function withoutSlack(reports: readonly RequestReport[]): RequestReport[] {
  const own = reports.map(report =>
    report.phase === 'held' ? { ...report, expiresIn: report.expiresIn - SLACK } : report,
  )
  return own.filter(({ expiresIn }) => expiresIn > 0)
}
