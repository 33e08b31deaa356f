import type { Clock } from '../../clock.js'
import type { PermitReservation } from '../../engine/contract.js'
import { withInfinity } from '../../engine/kit/memory-state.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { groupedBy } from '../../grouped.js'
import { reportOf, type KeptLimiter } from '../../engine/limits/report.js'
import {
  reservePermits,
  type LimiterState,
  type ReservePermits,
} from '../../engine/limits/reserve-permits.js'
import { Repetition, repeated } from './clients/repetition.js'
import { arrayText, SqlError, type Query, type SqlClient } from './clients/sql-client.js'
import { keyOf, rowName } from './names.js'
import { ServerClock } from './server-clock.js'
import type { Statements } from './statements.js'

/** Maximum age of a decision by the server's clock, in milliseconds. */
const MAX_AGE = 250
/** Maximum number of limiters in one statement. */
const MAX_BATCH = 256
/** After this many decisions by an outdated state, the row is locked during the next one. */
const MAX_OUTDATED = 2
const MAX_ATTEMPTS = 50
/** Maximum number of limiters whose state is cached. */
const MAX_CACHED = 4096

interface Job {
  request: ReservePermits
  /** How many times it was decided by an outdated state. */
  outdated: number
  readonly repetition: Repetition
  readonly resolve: (reservation: PermitReservation) => void
  readonly reject: (error: unknown) => void
}

/** The last known state of a limiter. Version 0 means that the limiter does not exist. */
interface Seen {
  readonly version: number
  readonly state: LimiterState | undefined
}

type Kept = readonly [version: number, content?: string | null]
type Answer =
  | readonly [state: 'done', now: number, kept: readonly Kept[], swept: readonly number[]]
  | readonly [state: 'clock', now: number]

/**
 * The limiters, each in a row. A box decides by the last known states, and the server stores the results if the rows
 * are still the same. The decisions of one tick are one statement.
 */
export class Limiters {
  readonly #sql: SqlClient
  readonly #query: Query
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #serverClock: ServerClock
  readonly #batcher = new TickBatcher<Job>(() => this.#next())
  readonly #locking = new Set<Promise<void>>()
  readonly #seen = new Map<string, Seen>()
  #swept: readonly number[] = [0, 0]

  /** @param query runs the statements that need no transaction. */
  constructor(sql: SqlClient, query: Query, statements: Statements, clock: Clock) {
    this.#sql = sql
    this.#query = query
    this.#statements = statements
    this.#clock = clock
    this.#serverClock = new ServerClock(clock)
  }

  /** Rejects with a SqlError. */
  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    const repetition = new Repetition(this.#clock)
    return new Promise((resolve, reject) =>
      this.#batcher.add({ request, outdated: 0, repetition, resolve, reject }),
    )
  }

  /**
   * The limiters whose state still has an effect, except those whose names are too long for an index. Rejects with a
   * SqlError.
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

  /** Resolves when all requests have a reply. */
  async idle(): Promise<void> {
    await this.#batcher.idle()
    await Promise.all(this.#locking)
  }

  async #next(): Promise<void> {
    const jobs = this.#batcher.take(MAX_BATCH)
    try {
      const outdated = await this.#attempt(jobs, this.#query)
      const again = outdated.filter(job => ++job.outdated < MAX_OUTDATED)
      for (const job of outdated) if (job.outdated >= MAX_OUTDATED) this.#decideLocked(job)
      if (again.length > 0) this.#batcher.putBack(again)
    } catch (error) {
      const again: Job[] = []
      for (const job of jobs) {
        if (isUndone(error) && ++job.outdated < MAX_ATTEMPTS) this.#decideLocked(job)
        else if (job.repetition.follows(error)) again.push(withoutReturns(job))
        else job.reject(job.repetition.lost ?? error)
      }
      if (again.length > 0) this.#batcher.putBack(again)
    }
  }

  /** Decides while the row is locked. Otherwise a distant box would always be behind closer ones. */
  #decideLocked(job: Job): void {
    const locking = this.#locked(job)
    this.#locking.add(locking)
    void locking.then(() => this.#locking.delete(locking))
  }

  async #locked(job: Job): Promise<void> {
    const { limiter } = job.request
    for (; job.outdated < MAX_ATTEMPTS; job.outdated++) {
      try {
        const outdated = await this.#sql.transaction(async query => {
          const asked = this.#clock.now()
          const text = await query(this.#statements.lockLimiter, [rowName('limit', limiter)])
          const [now, version, content] = JSON.parse(text as string) as [number, number, string | null]
          this.#serverClock.observe(now, asked)
          this.#keep(limiter, [version, content])
          return this.#attempt([job], query)
        })
        if (outdated.length === 0) return
      } catch (error) {
        if (!isUndone(error)) {
          job.reject(error)
          return
        }
      }
    }
    job.reject(new SqlError(`no decision within ${MAX_ATTEMPTS} attempts`, undefined, false, undefined))
  }

  /** Makes one attempt. @returns the jobs that were decided by an outdated state or clock */
  async #attempt(jobs: readonly Job[], query: Query): Promise<readonly Job[]> {
    const { at, earliest, latest } = this.#serverClock.now()
    const byLimiter = this.#serverClock.isKnown
      ? groupedBy(jobs, ({ request }) => request.limiter)
      : new Map()
    const rows = [...(byLimiter as Map<string, Job[]>)].map(([limiter, its]) => {
      const { version, state } = this.#take(limiter)
      let last = state
      let forgottenIn = 0
      const decided = its.map(job => {
        const { request } = job
        // The pause counts from the request, which may be later than the time of the decision.
        const pause = request.pause && request.pause + latest - earliest
        const decision = reservePermits(last, { ...request, pause }, at, at)
        last = decision.state
        forgottenIn = decision.forgottenIn
        return { job, reservation: { reserved: decision.reserved, earliest, latest } }
      })
      const content = `${Math.ceil(at + forgottenIn)} ${JSON.stringify(last)}`
      return { limiter, name: rowName('limit', limiter), version, decided, content, state: last }
    })
    rows.sort((one, other) => (one.name < other.name ? -1 : 1))
    const asked = this.#clock.now()
    const text = await query(this.#statements.keepLimiters, [
      arrayText(rows.map(({ name }) => name)),
      arrayText(rows.map(({ version }) => version)),
      // The server rejects a time in the future, and answers with its clock.
      String(this.#serverClock.isKnown ? Math.floor(at) : Number.MAX_SAFE_INTEGER),
      String(MAX_AGE),
      arrayText(rows.map(({ content }) => content)),
      arrayText(this.#swept),
    ])
    const answer = JSON.parse(text as string) as Answer
    if (answer[0] === 'clock') {
      this.#serverClock.forget()
      this.#serverClock.observe(answer[1], asked)
      return jobs
    }
    const [, now, kept, swept] = answer
    this.#serverClock.observe(now, asked)
    this.#swept = swept
    const outdated: Job[] = []
    for (const [index, { limiter, decided, state }] of rows.entries()) {
      const [version, ...content] = kept[index]!
      if (content.length > 0) {
        this.#keep(limiter, kept[index]!)
        outdated.push(...decided.map(({ job }) => job))
      } else {
        this.#remember(limiter, { version, state })
        for (const { job, reservation } of decided) job.resolve(reservation)
      }
    }
    return outdated
  }

  /**
   * Removes and returns the last known state. The decision changes it, so it is valid again only if the server stores
   * it.
   */
  #take(limiter: string): Seen {
    const seen = this.#seen.get(limiter)
    this.#seen.delete(limiter)
    return seen ?? { version: 0, state: undefined }
  }

  #keep(limiter: string, [version, content = null]: Kept): void {
    this.#remember(limiter, { version, state: content === null ? undefined : stateOf(content) })
  }

  #remember(limiter: string, seen: Seen): void {
    if (this.#seen.size >= MAX_CACHED) this.#seen.clear()
    this.#seen.set(limiter, seen)
  }
}

/**
 * The job as it is sent again after a statement that may have been executed. Permits must not be taken back twice, and
 * count as used instead.
 */
function withoutReturns(job: Job): Job {
  job.request = { ...job.request, returns: [] }
  return job
}

/** The state in the content of a row, which begins with the time until which it has an effect. */
function stateOf(content: string): LimiterState {
  return JSON.parse(content.slice(content.indexOf(' ')), withInfinity) as LimiterState
}

function isUndone(error: unknown): boolean {
  return error instanceof SqlError && error.isUndone
}
