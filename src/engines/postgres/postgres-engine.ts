import type { Clock, Timer } from '../../base/clock.js'
import type {
  Alive,
  Awaitable,
  Commit,
  CommitOutcome,
  Engine,
  Granted,
  Inspect,
  List,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  RequestReport,
  RequestStatus,
  PermitReservation,
  SessionInfo,
  SignOutcome,
  SqlTransaction,
} from '../../engine/contract.js'
import { afterSilence } from '../../engine/kit/after-silence.js'
import { LateRequests } from '../../engine/kit/late-requests.js'
import { purposeText } from '../../engine/kit/purpose-text.js'
import type { Hint, Purpose } from '../../engine/kit/state-engine.js'
import { boxClosed, UnavailableError } from '../../base/errors.js'
import type { Guarantees } from '../../base/guarantees.js'
import type { KeptLimiter } from '../../engine/limits/report.js'
import type { ReservePermits } from '../../engine/limits/reservation.js'
import { valueKeys, WATCH_TTL, type ServerOperation } from './call-arguments.js'
import { CallersCommits } from './callers-commits.js'
import { Calls, serverCall } from './calls.js'
import { callersTransaction } from './clients/callers-transaction.js'
import { repeated } from './clients/repetition.js'
import { SqlError, arrayText, type Query, type SqlClient, type SqlStatements } from './clients/sql-client.js'
import { explained } from './failures.js'
import { postgresGuarantees } from './guarantees.js'
import { Hints } from './hints.js'
import { Lanes } from './lanes.js'
import { sharedLimiters, type Limiters } from './limiters.js'
import { keyOf, rowName } from './names.js'
import { outcomeOf, reportsOf, type Json, type Notice } from './outcomes.js'
import { OwnRequests } from './own-requests.js'
import { provideSchema } from './provide-schema.js'
import { sendSign } from './signs.js'
import { statementsOf, type Statements } from './statements.js'

/** Interval at which a box that receives no messages checks for reservations, in milliseconds. */
const CHECK_INTERVAL = 100
/** Interval at which such a box reads the values that it watches, in milliseconds. */
const READ_INTERVAL = 1000
/** Time for which a box passes a lock on among its own callers until it checks for other waiters, in milliseconds. */
const UNCONTENDED_FOR = 2

/** Runs the lock table in functions of a PostgreSQL database: one statement decides each operation. */
export class PostgresEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly coversBySigns = true
  /** Undefined if the locks can't be acquired while a transaction of the caller's is open. */
  readonly commitWithin?: (commit: Commit, transaction: SqlTransaction) => Promise<CommitOutcome>
  readonly #sql: SqlClient
  /** Runs a statement that may be executed twice. */
  readonly #repeated: Query
  readonly #schema: string
  readonly #clock: Clock
  readonly #statements: Statements
  readonly #calls: Calls
  readonly #lanes: Lanes
  readonly #hints: Hints
  readonly #limiters: Limiters
  readonly #callersCommits: CallersCommits
  readonly #requests = new OwnRequests()
  /** The calls to the limiters that have no reply yet. */
  readonly #reserving = new Set<Promise<unknown>>()
  readonly #late: LateRequests
  readonly #watched = new Set<string>()
  /** The timers of the tasks that are repeated. */
  readonly #timers = new Map<() => void, Timer>()
  #info: SessionInfo | undefined
  #listener: Listener | undefined
  #isChecking = false
  /** Whether a further check was wanted during one. */
  #checksAgain = false
  #hasSigned = false
  #leaving: Promise<void> | undefined

  constructor(sql: SqlClient, schema: string, clock: Clock) {
    this.name = sql.name
    this.guarantees = sql.isEmbedded ? { ...postgresGuarantees, scope: 'thread' } : postgresGuarantees
    this.#sql = sql
    this.#schema = schema
    this.#clock = clock
    this.#statements = statementsOf(schema)
    this.#calls = new Calls(this.#statements, () => this.#info!)
    const ready = afterSilence(clock)
    const query: Query = (text, values) => ready(() => sql.query(text, values))
    this.#repeated = repeated(query, clock)
    this.#lanes = new Lanes(this.#calls, query, clock, {
      onNotices: (notices, isNotified) => this.#notify(notices, isNotified),
      onLost: operation => {
        if (this.#listener) this.#late.lost(operation)
      },
    })
    this.#late = new LateRequests({
      clock,
      isOwn: id => this.#requests.has(id),
      cancel: request => this.#run({ type: 'cancel', request }),
    })
    this.#limiters = sharedLimiters(sql, this.#statements, clock)
    this.#callersCommits = new CallersCommits(sql.query, this.#statements, clock, notices =>
      this.#notify(notices, false),
    )
    const receiver = {
      onHint: (hint: Hint) => this.#pass(hint),
      onMissed: () => this.#missed(),
      wantsHints: () => this.#watched.size > 0 || this.#requests.all.length > 0,
    }
    this.#hints = new Hints(sql, this.#statements, receiver, clock)
    if (!sql.isEmbedded) this.commitWithin = (commit, transaction) => this.#commitWithin(commit, transaction)
  }

  async join(info: SessionInfo, listener: Listener): Promise<void> {
    this.#info = info
    try {
      const provide = (sql: SqlStatements): Promise<void> => provideSchema(sql, this.#schema)
      await (this.#sql.together?.(provide) ?? provide(this.#sql))
    } catch (error) {
      await this.#close()
      throw explained(this.name, purposeText({ type: 'join' }), error)
    }
    this.#hints.open(info.session)
    this.#listener = listener
    this.#every(WATCH_TTL / 3, () => this.#renewWatches())
    this.#every(READ_INTERVAL, () => {
      if (!this.#hints.isReceiving && this.#watched.size > 0) listener.missed()
    })
    this.#every(CHECK_INTERVAL, () => {
      if (!this.#hints.isReceiving) void this.#checkReservations()
    })
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Promise<unknown> {
    return this.#explained(operation, async () => {
      switch (operation.type) {
        case 'alive':
          return this.#alive(operation)
        case 'inspect':
          return this.#inspect(operation)
        case 'list':
          return this.#list(operation)
        case 'revoke': {
          const text = await this.#repeated(this.#statements.rowsOf, [operation.session])
          const rows = JSON.parse(text as string) as readonly string[]
          return rows.length === 0 ? 0 : this.#run({ ...operation, rows })
        }
        case 'watch':
          this.#watched.add(operation.key)
          break
        case 'unwatch':
          this.#watched.delete(operation.key)
          break
        default:
      }
      return this.#run(operation)
    })
  }

  withdraw(request: LockRequest): boolean {
    return this.#lanes.withdraw(request)
  }

  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    return this.#explained({ type: 'reservePermits' }, () => {
      const reserving = this.#limiters.reservePermits(request)
      const done = (): unknown => this.#reserving.delete(reserving)
      this.#reserving.add(reserving)
      reserving.then(done, done)
      return reserving
    })
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#explained({ type: 'limiters' }, () => this.#limiters.list(isMeant))
  }

  async wallClock(): Promise<number> {
    const seconds = () => this.#repeated(this.#statements.clock, [])
    return Number(await this.#explained('read the clock', seconds)) * 1000
  }

  async fence({ request, number }: Granted, transaction: SqlTransaction): Promise<boolean> {
    const query = callersTransaction(this.name, transaction)
    // Without `begin`, each statement is a transaction of its own, so the fence would bind nothing.
    await query(this.#statements.begun, [])
    const [home] = request.claims.map(({ key }) => rowName('lock', key))
    const exclusive = request.claims.filter(({ mode }) => mode === 'exclusive')
    const rows = exclusive.map(({ key }) => rowName('lock', key))
    const { text, values } = this.#statements.fence
    return (await query(text, values({ wanted: rows, home: home!, request: request.id, number }))) === 'true'
  }

  leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  async #run(operation: ServerOperation): Promise<unknown> {
    this.#requests.sending(operation)
    if (operation.type === 'cancel' || operation.type === 'release') this.#late.givenUp(operation.request)
    if (operation.type !== 'read' && operation.type !== 'commit') this.#hints.start()
    const isClaim = operation.type === 'checkIn' && this.#requests.claims(operation.request)
    const answer = await this.#lanes.run(operation, isClaim).catch((error: unknown) => {
      if (error instanceof SqlError && !error.isUnclear) this.#requests.unsent(operation)
      throw error
    })
    const outcome = outcomeOf(operation, answer)
    this.#requests.settled(operation, outcome)
    if (operation.type !== 'extendOrYield') return outcome
    const status = outcome as RequestStatus
    if (status.state !== 'held' || status.id !== operation.request.id) return status
    // The server kept the grant because no other request waits. Without messages, that is known only for a moment.
    this.#clock.after(UNCONTENDED_FOR, () => this.#listener?.contended(operation.request.id), false)
    return { ...status, isUncontended: true }
  }

  #alive(sign: Alive): Promise<SignOutcome> {
    this.#hasSigned = true
    return sendSign(sign, this.#repeated, this.#statements, keys => this.#run({ type: 'sweepExpired', keys }))
  }

  async #inspect({ prefix, exact = false }: Inspect): Promise<RequestReport[]> {
    const name = exact ? rowName('lock', prefix) : `lock/${prefix}`
    const { text, values } = this.#statements.inspect
    const found = await this.#repeated(text, values({ prefix: name, exact }))
    const reports = reportsOf(JSON.parse(found as string) as Json).filter(({ key }) => key.startsWith(prefix))
    return reports.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  /** Lists keys in the order of the bytes of UTF-8, without those that are too long for an index. */
  async #list({ prefix, after, limit }: List): Promise<string[]> {
    const names = [`value/${prefix}`, `value/${after}`, String(limit)]
    const text = await this.#repeated(this.#statements.names, names)
    const keys = (JSON.parse(text as string) as readonly string[]).map(name => keyOf(name) ?? '')
    // Keys that begin with the prefix come first.
    return keys.filter(key => key.startsWith(prefix))
  }

  async #commitWithin(commit: Commit, transaction: SqlTransaction): Promise<CommitOutcome> {
    const query = callersTransaction(this.name, transaction)
    const bound: Commit = { ...commit, release: false }
    try {
      const rows = valueKeys(commit).map(key => rowName('value', key))
      // Inserts the missing rows in advance. If the caller's transaction inserted them, every other box that needs them
      // would wait. A transaction with a snapshot sees them only if it has run no statement yet.
      if (rows.length > 0) await this.#repeated(this.#statements.prepareValues, [arrayText(rows)])
      await query(this.#statements.begun, [])
      const { answers, notices } = await this.#calls.decide([serverCall(bound)], query, {
        isWithin: true,
        waits: true,
      })
      await this.#callersCommits.add(notices, query)
      return outcomeOf(bound, answers[0]!) as CommitOutcome
    } catch (error) {
      throw explained(this.name, purposeText(commit), error)
    }
  }

  /** Passes notices on to the listener, and to other sessions unless the server has. */
  #notify(notices: readonly Notice[], isNotified: boolean): Promise<void> | undefined {
    const underway: Promise<void>[] = []
    for (const each of notices) {
      const [type, session] = each
      const hint = hintOf(each)
      if (session === this.#info!.session) {
        if (hint) this.#pass(hint)
        else this.#listener?.missed()
        continue
      }
      if (!isNotified) underway.push(this.#hints.send(session, hint ?? { type: 'changed', about: '\n' }))
      const key = type === 'wake' ? keyOf(each[3]) : undefined
      if (key !== undefined) this.#listener?.reserved(key)
    }
    return underway.length === 0 ? undefined : Promise.all(underway).then(() => undefined)
  }

  #pass({ type, about }: Hint): void {
    if (type === 'wake') this.#requests.reserved(about)
    this.#listener?.[type](about)
  }

  #missed(): void {
    // A check that is under way may be older than the missed hints.
    // mutant: missed-during-look
    this.#checksAgain = this.#isChecking
    void this.#checkReservations()
    this.#listener?.missed()
  }

  /** Checks which waiting requests are reserved, with one statement that changes nothing. */
  async #checkReservations(): Promise<void> {
    const { waiting } = this.#requests
    if (waiting.length === 0 || this.#isChecking) return
    this.#isChecking = true
    try {
      const names = waiting.map(({ claims }) => rowName('lock', claims[0]!.key))
      const ids = waiting.map(({ id }) => id)
      const { text, values } = this.#statements.reservedOrGone
      const reply = await this.#sql.query(text, values({ names, ids }))
      for (const id of JSON.parse(reply as string) as readonly string[])
        this.#pass({ type: 'wake', about: id })
    } catch {
      // The next check or sign of life follows.
    } finally {
      this.#isChecking = false
    }
    if (!this.#checksAgain) return
    this.#checksAgain = false
    await this.#checkReservations()
  }

  #every(period: number, task: () => void): void {
    const run = (): void => {
      task()
      this.#every(period, task)
    }
    this.#timers.set(task, this.#clock.after(period, run, false))
  }

  /** Renews the watches of this session. */
  #renewWatches(): void {
    const { session } = this.#info!
    for (const key of this.#watched) this.#lanes.run({ type: 'watch', session, key }).catch(() => undefined)
  }

  /** Releases everything that the session has. Grants that can't be released expire with their leases. */
  async #leave(): Promise<void> {
    const hasJoined = this.#listener !== undefined
    this.#listener = undefined
    for (const timer of this.#timers.values()) timer.cancel()
    this.#callersCommits.close()
    this.#late.end()
    if (hasJoined) {
      const { session } = this.#info!
      await Promise.all([this.#lanes.idle(), Promise.allSettled(this.#reserving)])
      // mutant: leave-keeps-requests
      const cancelled = this.#requests.all.map(request => this.#lanes.run({ type: 'cancel', request }))
      const unwatched = [...this.#watched].map(key => this.#lanes.run({ type: 'unwatch', session, key }))
      const unsigned = this.#hasSigned ? [this.#repeated(this.#statements.endSigns, [session])] : []
      await Promise.allSettled([...cancelled, ...unwatched, ...unsigned])
    }
    await this.#close()
  }

  async #close(): Promise<void> {
    await this.#hints.close().catch(() => undefined)
    await this.#sql.close().catch(() => undefined)
  }

  /** Does work for a caller, and converts its errors. @param what the action to name in the error */
  async #explained<T>(what: Purpose | string, work: () => Promise<T>): Promise<T> {
    if (!this.#listener) throw boxClosed(this.name)
    try {
      return await work()
    } catch (error) {
      const failure = explained(this.name, typeof what === 'string' ? what : purposeText(what), error)
      if (this.#listener || !(failure instanceof UnavailableError)) throw failure
      throw boxClosed(this.name, error)
    }
  }
}

/** Returns the hint for a notice; undefined if only the hash of its key is known. */
function hintOf(notice: Notice): Hint | undefined {
  if (notice[0] !== 'changed') return { type: notice[0], about: notice[2] }
  const key = keyOf(notice[2])
  return key === undefined ? undefined : { type: 'changed', about: key }
}
