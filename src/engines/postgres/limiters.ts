import { randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import type { PermitReservation } from '../../engine/contract.js'
import { afterSilence } from '../../engine/kit/after-silence.js'
import { withInfinity } from '../../engine/kit/memory-state.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { groupedBy } from '../../base/grouped.js'
import { reportOf, type KeptLimiter } from '../../engine/limits/report.js'
import { reservePermits, type LimiterState } from '../../engine/limits/reserve-permits.js'
import type { Reserved, ReservePermits } from '../../engine/limits/reservation.js'
import { LaneQuery } from './clients/lane-query.js'
import { Repetition, repeated } from './clients/repetition.js'
import { SqlError, type Query, type SqlClient, type SqlStatements } from './clients/sql-client.js'
import { keyOf, rowName } from './names.js'
import { answerOf, answerText, requestOf, requestText, type PermitRequest } from './permit-requests.js'
import { ServerClock, type ServerTime } from './server-clock.js'
import type { Statements } from './statements.js'

/**
 * Maximum age of a decision by the server's clock, in milliseconds. If it were older, the rules would assume that the
 * clock was set back.
 */
const MAX_AGE = 900
/** Maximum number of limiters in one statement. */
const MAX_BATCH = 256
const MAX_ATTEMPTS = 50
/** The SQLSTATE of a statement that has waited for too long for a locked row. */
const LOCKED = '55P03'
/** Maximum number of limiters whose state is cached. */
const MAX_CACHED = 4096

/** A decision about a limiter, for a caller or only for other boxes. */
interface Job {
  readonly limiter: string
  readonly call?: Call
}

interface Call {
  request: ReservePermits
  /** Number of decisions by an outdated state. */
  outdated: number
  readonly repetition: Repetition
  /** The request that is left for other boxes. Each statement looks for its answer, until a decision is stored. */
  left?: LeftRequest
  /** Whether a statement may have left the request. Then another box may decide it at any time. */
  isLeft?: boolean
  readonly resolve: (reservation: PermitReservation) => void
  readonly reject: (error: unknown) => void
}

/** The last known state of a limiter. Version 0 means that the limiter does not exist. */
interface Seen {
  readonly version: number
  readonly state: LimiterState | undefined
  /** Whether the last decision of this box was not stored, although it knew a state. */
  readonly isBehind: boolean
  /** The requests of other boxes that had no answer when this box stored the state. */
  readonly requests: readonly PermitRequest[]
}

const UNSEEN: Seen = { version: 0, state: undefined, isBehind: false, requests: [] }

type Kept = readonly [
  isKept: boolean,
  version: number,
  content: string | null,
  answers: readonly (readonly [id: string, answer: string])[] | null,
  requests: readonly (readonly [since: number, id: string, request: string])[] | null,
]
type Answer = readonly [isTimely: boolean, now: number, kept: readonly Kept[], swept: readonly number[]]

/**
 * Decides limiters, each of which has a row. A box decides by the last known states, and the server stores the results
 * if the rows have not changed. The decisions of one tick share a statement.
 *
 * A distant box would always be behind closer ones. So if its decision was outdated, its next statement leaves the
 * request at the server. The box whose decision is stored learns of such requests from the reply, decides them at once
 * and leaves the answers, which the distant box finds with its next statement. If no box has decided in the meantime,
 * the distant one's next decision is stored.
 */
export class Limiters {
  readonly #query: Query
  readonly #statements: Statements
  readonly #lane: LaneQuery
  readonly #clock: Clock
  readonly #serverClock: ServerClock
  readonly #batcher = new TickBatcher<Job>(() => this.#next())
  readonly #seen = new Map<string, Seen>()
  /**
   * Limiters that are decided by statements of their own, because a row in a common one was locked. A decision may take
   * several statements.
   */
  readonly #apart = new Set<string>()
  #swept: readonly number[] = [0, 0]

  constructor(query: Query, statements: Statements, clock: Clock) {
    this.#query = query
    this.#lane = new LaneQuery(query, clock)
    this.#statements = statements
    this.#clock = clock
    this.#serverClock = new ServerClock(clock)
  }

  /** Rejects with a SqlError. */
  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    const repetition = new Repetition(this.#clock)
    return new Promise((resolve, reject) => {
      const call = { request, outdated: 0, repetition, resolve, reject }
      this.#batcher.add({ limiter: request.limiter, call })
    })
  }

  /**
   * Returns the limiters whose state still has an effect, except those whose names are too long for an index. Rejects
   * with a SqlError.
   */
  async list(isMeant: (limiter: string) => boolean): Promise<KeptLimiter[]> {
    const text = await repeated(this.#query, this.#clock)(this.#statements.limiters, [])
    const [now, rows] = JSON.parse(text as string) as [number, readonly (readonly [string, string])[]]
    return rows.flatMap(([name, content]) => {
      const limiter = keyOf(name)
      if (limiter === undefined || !isMeant(limiter)) return []
      return reportOf(limiter, stateOf(content), now, now) ?? []
    })
  }

  async #next(): Promise<void> {
    const jobs = this.#batcher.take(MAX_BATCH)
    const together = groupedBy(jobs, ({ limiter }) => (this.#apart.has(limiter) ? limiter : undefined))
    await Promise.all([...together.values()].map(its => this.#execute(its)))
  }

  async #execute(jobs: readonly Job[]): Promise<void> {
    const limiters = new Set(jobs.map(({ limiter }) => limiter))
    try {
      await this.#attempt(jobs)
    } catch (error) {
      const isLocked = error instanceof SqlError && error.code === LOCKED
      // The other limiters must not fail with the one whose row is locked.
      const isApart = isLocked && limiters.size > 1
      for (const limiter of limiters) this.#apart[isApart ? 'add' : 'delete'](limiter)
      if (isApart) this.#batcher.putBack(jobs)
      else if (error instanceof SqlError && error.isUndone) this.#again(jobs)
      else this.#failed(jobs, error)
    }
  }

  /** Resends jobs whose statement may have been executed, while they have time left. Rejects the others. */
  #failed(jobs: readonly Job[], error: unknown): void {
    const again = jobs.filter(({ call }) => {
      if (!call?.repetition.follows(error)) {
        if (call) reject(call, error)
        return false
      }
      // Permits must not be taken back twice, and count as used instead.
      if (call.repetition.lost) call.request = { ...call.request, returns: [] }
      return true
    })
    if (again.length > 0) this.#batcher.putBack(again)
  }

  /** Repeats jobs whose decisions were not stored. */
  #again(jobs: readonly Job[]): void {
    const again = jobs.filter(({ call }) => {
      // The box that has decided in the meantime answers the requests of others.
      if (!call) return false
      if (++call.outdated < MAX_ATTEMPTS) return true
      reject(call, new SqlError(`no decision within ${MAX_ATTEMPTS} attempts`, undefined, false, undefined))
      return false
    })
    if (again.length > 0) this.#batcher.putBack(again)
  }

  async #attempt(jobs: readonly Job[]): Promise<void> {
    const isKnown = this.#serverClock.isKnown
    const time = this.#serverClock.now()
    const rows = [...groupedBy(jobs, ({ limiter }) => limiter)].map(([limiter, its]) =>
      this.#decide(limiter, its, isKnown ? time : undefined),
    )
    rows.sort((one, other) => (one.name < other.name ? -1 : 1))
    const asked = this.#clock.now()
    const repetitions = jobs.flatMap(({ call }) => call?.repetition ?? [])
    const { decideLimiters } = this.#statements
    const values = decideLimiters.values({
      wanted: rows.map(({ name }) => name),
      expected: rows.map(({ version }) => version),
      // The server rejects a time in the future, and answers with its clock.
      decided: isKnown ? Math.floor(time.at) : Number.MAX_SAFE_INTEGER,
      slack: MAX_AGE,
      contents: rows.map(({ content }) => content),
      requests: rows.map(({ left }) => left),
      answers: rows.map(({ answers }) => answers),
      swept: this.#swept,
    })
    const text = await this.#lane.for(repetitions)(decideLimiters.text, values)
    const [isTimely, now, kept, swept] = JSON.parse(text as string) as Answer
    if (!isTimely) this.#serverClock.forget()
    this.#serverClock.observe(now, asked)
    this.#swept = swept
    for (const [index, row] of rows.entries()) {
      try {
        this.#settle(row, kept[index]!)
      } catch (error) {
        // Another program has written to the row. The other limiters have their decisions.
        const cause = new SqlError(`the row ${row.name} can't be read`, undefined, false, error)
        for (const { call } of row.jobs) if (call) reject(call, cause)
      }
    }
  }

  /** Decides the requests of a limiter by its last known state. @param time undefined if it is not known */
  #decide(limiter: string, jobs: readonly Job[], time: ServerTime | undefined): Decided {
    const seen = this.#take(limiter)
    const calls = jobs.flatMap(({ call }) => call ?? [])
    const left = textOf(calls.flatMap(call => leave(call, time, seen.isBehind)))
    const decided = { limiter, name: rowName('limit', limiter), version: seen.version, jobs, left }
    if (!time) return { ...decided, content: '', answers: '', state: undefined, reservations: [] }
    const { at, earliest, latest } = time
    let { state } = seen
    let forgottenIn = 0
    const reserved = (request: ReservePermits, later: number): Reserved => {
      // The pause counts from the request, which may be later than the time of the decision.
      const pause = request.pause && request.pause + later
      const decision = reservePermits(state, { ...request, pause }, at, at)
      state = decision.state
      forgottenIn = decision.forgottenIn
      return decision.reserved
    }
    const own = new Set(calls.map(({ left }) => left?.id))
    const answers: unknown[] = []
    for (const { since, id, request } of seen.requests) {
      if (own.has(id)) continue
      answers.push([since, id, answerText(reserved(request, Math.max(since - at, 0)))])
    }
    const reservations = calls.map(call => {
      if (call.left) answers.push([call.left.since, call.left.id, null])
      return { reserved: reserved(call.request, latest - earliest), earliest, latest }
    })
    return {
      ...decided,
      content: `${Math.ceil(at + forgottenIn)} ${JSON.stringify(state)}`,
      answers: textOf(answers),
      state,
      reservations,
    }
  }

  #settle({ limiter, jobs, version: expected, state, reservations }: Decided, kept: Kept): void {
    const [isKept, version, content, answers, left] = kept
    const requests = (left ?? []).flatMap(([since, id, text]) => {
      const request = requestOf(limiter, text)
      return request ? [{ since, id, request }] : []
    })
    if (isKept) {
      this.#apart.delete(limiter)
      this.#remember(limiter, { version, state, isBehind: false, requests })
      const calls = jobs.flatMap(({ call }) => call ?? [])
      for (const [index, call] of calls.entries()) call.resolve(reservations[index]!)
      // Other boxes left these requests because their states were outdated. So this box answers them.
      if (requests.length > 0) this.#batcher.add({ limiter })
      return
    }
    const known = content === null ? undefined : stateOf(content)
    this.#remember(limiter, {
      version,
      state: known,
      isBehind: expected > 0 && expected !== version,
      requests,
    })
    const found = new Map(answers)
    this.#again(
      jobs.filter(({ call }) => {
        if (!call?.left) return true
        call.isLeft = true
        const answer = found.get(call.left.id)
        if (answer === undefined) return true
        const reserved = answerOf(answer)
        const { earliest, latest } = this.#serverClock.timeOf(reserved.now)
        call.resolve({ reserved, earliest, latest })
        return false
      }),
    )
  }

  /**
   * Removes and returns the last known state. The decision changes it, so it is valid again only if the server stores
   * it.
   */
  #take(limiter: string): Seen {
    const seen = this.#seen.get(limiter)
    this.#seen.delete(limiter)
    return seen ?? UNSEEN
  }

  #remember(limiter: string, seen: Seen): void {
    if (this.#seen.size >= MAX_CACHED) this.#seen.clear()
    this.#seen.set(limiter, seen)
  }
}

/** The shared limiters, by the statements of the boxes that share connections. */
const limitersOf = new WeakMap<SqlStatements, Limiters>()

/**
 * Returns the limiters of a box. Boxes that share connections share them, too: otherwise each would mostly decide by a
 * state that another has changed.
 */
export function sharedLimiters(sql: SqlClient, statements: Statements, clock: Clock): Limiters {
  const known = sql.ofAll && limitersOf.get(sql.ofAll)
  if (known) return known
  const ready = afterSilence(clock)
  const source = sql.ofAll ?? sql
  const limiters = new Limiters((text, values) => ready(() => source.query(text, values)), statements, clock)
  if (sql.ofAll) limitersOf.set(sql.ofAll, limiters)
  return limiters
}

/** The decision of a limiter that the server may store. */
interface Decided {
  readonly limiter: string
  readonly jobs: readonly Job[]
  readonly name: string
  /** The version of the last known state. */
  readonly version: number
  readonly state: LimiterState | undefined
  readonly content: string
  /** The requests to leave if the state was outdated, as JSON. */
  readonly left: string
  /** The answers to the requests of other boxes if the state was not outdated, as JSON. */
  readonly answers: string
  /** The answers to the calls of the jobs. */
  readonly reservations: readonly PermitReservation[]
}

interface LeftRequest extends Pick<PermitRequest, 'since' | 'id'> {
  readonly text: string
}

/**
 * Leaves a request for other boxes if this one is behind them.
 * @returns the entry for the statement, if there is one. Each statement names a request that was left. Otherwise its
 * answer could stay unread, and the permits that it returns would be taken back twice.
 */
function leave(call: Call, time: ServerTime | undefined, isBehind: boolean): readonly unknown[] {
  if (!call.left && time && isBehind) {
    const { request } = call
    const pause = request.pause && request.pause + time.latest - time.earliest
    const text = requestText({ ...request, pause })
    // An integer has the same text with every setting of the server.
    call.left = { since: Math.floor(time.at), id: randomUUID(), text }
  }
  const { left } = call
  return left ? [[left.since, left.id, left.text]] : []
}

/** Rejects a call. If an earlier statement may have had an effect, the error is unclear. */
function reject({ isLeft, repetition: { lost }, reject: settle }: Call, error: unknown): void {
  const isUnclear = isLeft === true && error instanceof SqlError
  settle(lost ?? (isUnclear ? new SqlError(error.message, error.code, true, error) : error))
}

function textOf(list: readonly unknown[]): string {
  return list.length === 0 ? '' : JSON.stringify(list)
}

/** Returns the state in the content of a row. The content begins with the time until which the state has an effect. */
function stateOf(content: string): LimiterState {
  return JSON.parse(content.slice(content.indexOf(' ')), withInfinity) as LimiterState
}
