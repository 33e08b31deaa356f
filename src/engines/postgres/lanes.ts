import type { Clock } from '../../base/clock.js'
import type { Enqueue, ExtendOrYield, LockRequest } from '../../engine/contract.js'
import { mayRepeat, showsOutcome } from '../../engine/kit/repetition.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { argumentsOf, type ServerOperation } from './call-arguments.js'
import type { CallOptions, Calls, ServerCall } from './calls.js'
import { LaneQuery } from './clients/lane-query.js'
import { Repetition } from './clients/repetition.js'
import { SqlError, type Query } from './clients/sql-client.js'
import { lockedRow, outcomeOf, type Json, type Notice } from './outcomes.js'

/** Maximum number of operations in one call. */
const MAX_BATCH = 256
/** SQLSTATE: another transaction has locked a row for longer than the server waits for it. */
const ROW_IS_LOCKED = '55P03'
/** Maximum time that an operation without a wait of its own waits for such a row, in milliseconds. */
const MAX_ROW_WAIT = 2000
/** Maximum time that one attempt waits for the row, and the pause before the next attempt, in milliseconds. */
const RETRY_ROW_TIMEOUT = 50
const RETRY_PAUSE = 50
/** If statements take at least this long, in milliseconds, claims do not wait for their end. */
const FAR = 100
/** Maximum number of statements with such claims at a time. */
const CLAIM_LANES = 2

/** Notifies sessions, unless the server has. The promise resolves when the notices no longer depend on this process. */
type NoticeHandler = (notices: readonly Notice[], isNotified: boolean) => Promise<void> | undefined

/** Receives the events of lanes, other than replies. */
export interface LanesListener {
  readonly onNotices: NoticeHandler
  /** Called with an operation that may have been executed, or may be executed later. */
  readonly onLost: (operation: Enqueue | ExtendOrYield) => void
}

interface Job extends ServerCall {
  /** The clock time at which to give up waiting for a row that another transaction has locked. */
  readonly until: number
  /** Decides whether to send the operation again if it was lost with its connection. */
  readonly repetition: Repetition
  readonly resolve: (answer: Json) => void
  readonly reject: (error: unknown) => void
}

/** The operations that wait for one row, in the order of their calls. */
interface LockedRow {
  readonly name: string
  readonly jobs: Job[]
  /** Whether the first of them is being tried. */
  isTried: boolean
}

/**
 * Sends operations to the server. The operations of one tick share a call, and the next call follows the reply.
 * Renewals have calls of their own. So have the claims of a distant box, which would otherwise lose turns while the box
 * waits for another reply. Operations on a row that another transaction has locked wait separately.
 */
export class Lanes {
  readonly #calls: Calls
  readonly #clock: Clock
  readonly #listener: LanesListener
  readonly #main: TickBatcher<Job>
  readonly #renewals: TickBatcher<Job>
  readonly #claims: readonly TickBatcher<Job>[]
  /** Duration of the last statement of the main lane, in milliseconds. */
  #took = 0
  /** The locked rows by name. The next row to wait for comes first. */
  readonly #blocked = new Map<string, LockedRow>()
  readonly #blockedQuery: LaneQuery
  #isRetrying = false

  constructor(calls: Calls, query: Query, clock: Clock, listener: LanesListener) {
    this.#calls = calls
    this.#clock = clock
    this.#listener = listener
    const lane = (): TickBatcher<Job> => {
      const its = new LaneQuery(query, clock)
      const batcher: TickBatcher<Job> = new TickBatcher(async () => {
        const begun = clock.now()
        await this.#execute(batcher.take(MAX_BATCH), its)
        if (batcher === this.#main) this.#took = clock.now() - begun
      })
      return batcher
    }
    this.#main = lane()
    this.#renewals = lane()
    this.#claims = Array.from({ length: CLAIM_LANES }, lane)
    this.#blockedQuery = new LaneQuery(query, clock)
  }

  /** Sends an operation. Rejects with a SqlError. @param isClaim whether its request is probably reserved */
  run(operation: ServerOperation, isClaim = false): Promise<Json> {
    return new Promise((resolve, reject) => {
      const wait = 'wait' in operation ? Math.max(operation.wait, 1) : MAX_ROW_WAIT
      const args = argumentsOf(operation)
      const until = this.#clock.now() + wait
      const job = { operation, args, until, repetition: new Repetition(this.#clock), resolve, reject }
      if (operation.type === 'renew') this.#renewals.add(job)
      else if (isClaim && this.#took >= FAR) this.#laneOfClaim().add(job)
      else this.#main.add(job)
    })
  }

  #laneOfClaim(): TickBatcher<Job> {
    return [this.#main, ...this.#claims].find(lane => !lane.isUnderway) ?? this.#claims[0]!
  }

  /** Removes an enqueue that was not sent. Returns whether there was one. */
  withdraw({ id }: LockRequest): boolean {
    const isIts = ({ operation }: Job): boolean => operation.type === 'enqueue' && operation.request.id === id
    const job = this.#main.withdraw(isIts) ?? this.#withdrawBlocked(isIts)
    job?.resolve('busy')
    return job !== undefined
  }

  /** Resolves when all operations have a reply. Those that wait for a row are rejected. */
  async idle(): Promise<void> {
    this.#refuseBlocked()
    await Promise.all([this.#main, this.#renewals, ...this.#claims].map(lane => lane.idle()))
    // Also rejects operations whose row turned out to be locked in the meantime.
    this.#refuseBlocked()
  }

  #refuseBlocked(): void {
    const error = new SqlError('the box was closed', ROW_IS_LOCKED, false, undefined)
    for (const { jobs } of this.#blocked.values())
      for (const job of jobs.splice(0)) job.reject(job.repetition.lost ?? error)
    this.#blocked.clear()
  }

  #withdrawBlocked(isIts: (job: Job) => boolean): Job | undefined {
    for (const row of this.#blocked.values()) {
      const at = row.jobs.findIndex(isIts)
      if (at < 0) continue
      return row.isTried && at === 0 ? undefined : row.jobs.splice(at, 1)[0]
    }
    return undefined
  }

  async #execute(all: readonly Job[], lane: LaneQuery): Promise<void> {
    const jobs = all.filter(job => {
      // mutant: blocked-row-overtaken
      const name = job.args.changed.find(row => this.#blocked.has(row))
      if (name !== undefined) this.#block(job, name)
      return name === undefined
    })
    if (jobs.length === 0) return
    for (const [job, name] of await this.#send(jobs, lane)) this.#block(job, name)
  }

  /**
   * Sends operations together.
   * @returns the operations whose row another transaction has locked, each with the row's name.
   */
  async #send(
    jobs: readonly Job[],
    lane: LaneQuery,
    options?: CallOptions,
  ): Promise<ReadonlyMap<Job, string>> {
    const blocked = new Map<Job, string>()
    try {
      const query = lane.for(jobs.map(({ repetition }) => repetition))
      const { answers, notices, isNotified } = await this.#calls.decide(jobs, query, options)
      const settled: (() => void)[] = []
      const again: Job[] = []
      for (const [index, job] of jobs.entries()) {
        const answer = answers[index]!
        const name = job.operation.type === 'commit' ? lockedRow(answer) : undefined
        if (name !== undefined) blocked.set(job, name)
        else if (answer === 'again') again.push(job)
        else settled.push(() => settleBy(answer, job))
      }
      const settle = (): void => {
        for (const each of settled) each()
      }
      // The caller may end the process as soon as it gets the outcome.
      const notified = this.#listener.onNotices(notices, isNotified)
      if (notified) notified.then(settle, settle)
      else settle()
      if (again.length > 0)
        for (const [job, name] of await this.#send(again, lane, { ...options, isRetry: true }))
          blocked.set(job, name)
    } catch (error) {
      if (error instanceof SqlError && error.isUnclear)
        for (const { operation } of jobs)
          if (operation.type === 'enqueue' || operation.type === 'extendOrYield')
            this.#listener.onLost(operation)
      const repeated = jobs.filter(job => mayRepeat(job.operation) && job.repetition.follows(error))
      if (repeated.length > 0) {
        for (const job of jobs) if (!repeated.includes(job)) job.reject(error)
        return this.#send(repeated, lane, options)
      }
      const isRefused = error instanceof SqlError && error.code !== undefined && !error.isUnclear
      if (isRefused && jobs.length > 1)
        // The server rejected all of them because of one. Send each by itself.
        for (const job of jobs)
          for (const [its, name] of await this.#send([job], lane, options)) blocked.set(its, name)
      else
        for (const job of jobs) {
          if (error instanceof SqlError && error.code === ROW_IS_LOCKED) blocked.set(job, job.args.name)
          else job.reject(job.repetition.lost ?? error)
        }
    }
    return blocked
  }

  /** Queues an operation behind those that wait for this row. */
  #block(job: Job, name: string): void {
    const row = this.#blocked.get(name) ?? { name, jobs: [], isTried: false }
    this.#blocked.set(name, row)
    row.jobs.push(job)
    if (this.#isRetrying) return
    this.#isRetrying = true
    this.#scheduleRetry()
  }

  #scheduleRetry(): void {
    this.#clock.after(RETRY_PAUSE, () => void this.#retry(), true)
  }

  /**
   * Waits for the row whose turn it is, then tries the other rows of values without waiting. So the box waits for a
   * contended row like any other transaction, and a row that stays locked hardly delays the others.
   */
  async #retry(): Promise<void> {
    const [first] = this.#blocked.values()
    if (first) {
      // The row becomes the last in turn.
      this.#blocked.delete(first.name)
      this.#blocked.set(first.name, first)
      await this.#try([first], { waits: true, rowTimeout: RETRY_ROW_TIMEOUT })
      const values = [...this.#blocked.values()].filter(row => row !== first && row.name.startsWith('value'))
      if (values.length > 0) await this.#try(values.slice(0, MAX_BATCH))
    }
    if (this.#blocked.size > 0) this.#scheduleRetry()
    else this.#isRetrying = false
  }

  /** Tries the first operation of each row. */
  async #try(rows: readonly LockedRow[], options?: CallOptions): Promise<void> {
    const tried = rows.flatMap(row => {
      const [job] = row.jobs
      row.isTried = job !== undefined
      return job ? [{ row, job }] : []
    })
    const jobs = tried.map(({ job }) => job)
    const blocked = jobs.length > 0 ? await this.#send(jobs, this.#blockedQuery, options) : undefined
    for (const { row, job } of tried) {
      row.isTried = false
      const isOver = this.#clock.now() >= job.until
      if (blocked?.has(job) && !isOver) continue
      // The operation has its reply, or has run out of time.
      if (row.jobs[0] === job) row.jobs.shift()
      if (blocked?.has(job)) {
        const locked = new SqlError('another transaction has locked the row', ROW_IS_LOCKED, false, undefined)
        // mutant: lost-before-locked
        job.reject(job.repetition.lost ?? locked)
      }
    }
    // Operations may be waiting for the same row again by now.
    for (const row of rows)
      if (row.jobs.length === 0 && this.#blocked.get(row.name) === row) this.#blocked.delete(row.name)
  }
}

/** Settles a job. If it was lost once, the reply may not show its outcome. */
function settleBy(answer: Json, { operation, repetition, resolve, reject }: Job): void {
  const { lost } = repetition
  // mutant: repeated-statement-believed
  if (lost && !showsOutcome(operation, outcomeOf(operation, answer))) reject(lost)
  else resolve(answer)
}
