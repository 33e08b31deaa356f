import type { Clock } from '../../clock.js'
import type { LockRequest } from '../../engine/contract.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import type { CallOptions, Calls, Worded } from './calls.js'
import { SqlError, type Query } from './clients/sql-client.js'
import { heldRow, type Json, type Told } from './outcomes.js'
import { rowName } from './names.js'
import { wordsOf, type ServerOperation } from './words.js'

/** Maximum number of operations in one call. */
const MAX_BATCH = 256
/** A transaction elsewhere holds a row for longer than the server waits for it. */
const ROW_IS_HELD = '55P03'
/** How long an operation without a wait of its own waits for such a row: milliseconds. */
const MAX_HELD = 2000
/** How long one attempt waits for it, and how long it is until the next one: milliseconds. */
const HELD_PATIENCE = 50
const HELD_PAUSE = 50

/**
 * Takes what sessions have to be notified of, and notifies them unless the server has. Settles when that can't be lost
 * with this process any more.
 */
type ToldTaker = (told: readonly Told[], isNotified: boolean) => Promise<void> | undefined

interface Job extends Worded {
  /** Until when it waits for a row that a transaction elsewhere holds: clock time. */
  readonly until: number
  readonly resolve: (answer: Json) => void
  readonly reject: (error: unknown) => void
}

/** What waits for one row, in the order of the calls. */
interface HeldRow {
  readonly name: string
  readonly jobs: Job[]
  /** Whether the first of them is under way. */
  isTried: boolean
}

/**
 * The ways of operations to the server. What one tick brings is one call, and the next follows its answer. Renewals have
 * calls of their own. Operations on a row that a transaction elsewhere holds wait apart from all others.
 */
export class Lanes {
  readonly #calls: Calls
  readonly #query: Query
  readonly #clock: Clock
  readonly #told: ToldTaker
  readonly #main: TickBatcher<Job>
  readonly #renewals: TickBatcher<Job>
  /** By the name of the row; the one that is waited for next comes first. */
  readonly #held = new Map<string, HeldRow>()
  #isTryingHeld = false

  constructor(calls: Calls, query: Query, clock: Clock, told: ToldTaker) {
    this.#calls = calls
    this.#query = query
    this.#clock = clock
    this.#told = told
    this.#main = new TickBatcher(() => this.#carryOut(this.#main.take(MAX_BATCH)))
    this.#renewals = new TickBatcher(() => this.#carryOut(this.#renewals.take(MAX_BATCH)))
  }

  /** Rejects with a SqlError. */
  run(operation: ServerOperation): Promise<Json> {
    return new Promise((resolve, reject) => {
      const wait = 'wait' in operation ? Math.max(operation.wait, 1) : MAX_HELD
      const words = wordsOf(operation)
      const job = { operation, words, until: this.#clock.now() + wait, resolve, reject }
      if (operation.type === 'renew') this.#renewals.add(job)
      else this.#main.add(job)
    })
  }

  /** Takes out an enqueue that was not sent. */
  withdraw({ id }: LockRequest): boolean {
    const isIts = ({ operation }: Job): boolean => operation.type === 'enqueue' && operation.request.id === id
    const job = this.#main.withdraw(isIts) ?? this.#withdrawHeld(isIts)
    job?.resolve('busy')
    return job !== undefined
  }

  /** Settles when all that was asked for has its answer. What waits for a row is given up. */
  async idle(): Promise<void> {
    const error = new SqlError('the box was closed', ROW_IS_HELD, false, undefined)
    for (const { jobs } of this.#held.values()) for (const job of jobs.splice(0)) job.reject(error)
    this.#held.clear()
    await Promise.all([this.#main.idle(), this.#renewals.idle()])
  }

  #withdrawHeld(isIts: (job: Job) => boolean): Job | undefined {
    for (const row of this.#held.values()) {
      const at = row.jobs.findIndex(isIts)
      if (at < 0) continue
      return row.isTried && at === 0 ? undefined : row.jobs.splice(at, 1)[0]
    }
    return undefined
  }

  async #carryOut(all: readonly Job[]): Promise<void> {
    const jobs = all.filter(job => !this.#isBehindHeld(job))
    if (jobs.length === 0) return
    for (const [job, name] of await this.#send(jobs)) this.#hold(job, name)
  }

  /** Sends operations together. @returns those that have found a row held, with its name. */
  async #send(jobs: readonly Job[], options?: CallOptions): Promise<ReadonlyMap<Job, string>> {
    const held = new Map<Job, string>()
    try {
      const { answers, told, isNotified } = await this.#calls.decide(jobs, this.#query, options)
      const settled: (() => void)[] = []
      const again: Job[] = []
      for (const [index, job] of jobs.entries()) {
        const answer = answers[index]!
        const name = job.operation.type === 'commit' ? heldRow(answer) : undefined
        if (name !== undefined) held.set(job, name)
        else if (answer === 'again') again.push(job)
        else settled.push(() => job.resolve(answer))
      }
      const settle = (): void => {
        for (const each of settled) each()
      }
      // The caller may end the process as soon as it has the outcome.
      const notified = this.#told(told, isNotified)
      if (notified) notified.then(settle, settle)
      else settle()
      if (again.length > 0)
        for (const [job, name] of await this.#send(again, { ...options, isAgain: true })) held.set(job, name)
    } catch (error) {
      const isRefused = error instanceof SqlError && error.code !== undefined && !error.isUnclear
      if (isRefused && jobs.length > 1)
        // The server refuses all of it because of one of the operations. The others are carried out without that.
        for (const job of jobs)
          for (const [its, name] of await this.#send([job], options)) held.set(its, name)
      else
        for (const job of jobs) {
          if (error instanceof SqlError && error.code === ROW_IS_HELD) held.set(job, job.words.name)
          else job.reject(error)
        }
    }
    return held
  }

  /** Puts an operation behind those that wait for one of its rows. */
  #isBehindHeld(job: Job): boolean {
    if (this.#held.size === 0) return false
    const name = rowsOf(job).find(row => this.#held.has(row))
    if (name === undefined) return false
    this.#hold(job, name)
    return true
  }

  #hold(job: Job, name: string): void {
    const row = this.#held.get(name) ?? { name, jobs: [], isTried: false }
    this.#held.set(name, row)
    row.jobs.push(job)
    if (this.#isTryingHeld) return
    this.#isTryingHeld = true
    this.#tryHeldSoon()
  }

  #tryHeldSoon(): void {
    this.#clock.after(HELD_PAUSE, () => void this.#tryHeld(), true)
  }

  /**
   * Waits for the row whose turn it is, and then looks for all others, without waiting. So a row that is contended is
   * waited for as by any other transaction, and one that is held long delays no other for long.
   */
  async #tryHeld(): Promise<void> {
    const [first] = this.#held.values()
    if (first) {
      // Its turn comes again after those of the others.
      this.#held.delete(first.name)
      this.#held.set(first.name, first)
      await this.#try([first], { waits: true, patience: HELD_PATIENCE })
      const values = [...this.#held.values()].filter(row => row !== first && row.name.startsWith('value'))
      if (values.length > 0) await this.#try(values.slice(0, MAX_BATCH))
    }
    if (this.#held.size > 0) {
      this.#tryHeldSoon()
      return
    }
    this.#isTryingHeld = false
  }

  /** Tries the first operation of each row. */
  async #try(rows: readonly HeldRow[], options?: CallOptions): Promise<void> {
    const tried = rows.flatMap(row => {
      const [job] = row.jobs
      row.isTried = job !== undefined
      return job ? [{ row, job }] : []
    })
    const jobs = tried.map(({ job }) => job)
    const held = jobs.length > 0 ? await this.#send(jobs, options) : undefined
    for (const { row, job } of tried) {
      row.isTried = false
      const isOver = this.#clock.now() >= job.until
      if (held?.has(job) && !isOver) continue
      // It has its answer, unless it is given up now.
      if (row.jobs[0] === job) row.jobs.shift()
      if (held?.has(job))
        job.reject(new SqlError('a transaction elsewhere holds the row', ROW_IS_HELD, false, undefined))
    }
    for (const row of rows) if (row.jobs.length === 0) this.#held.delete(row.name)
  }
}

/** The rows that an operation locks. */
function rowsOf({ operation, words }: Job): readonly string[] {
  if (operation.type !== 'commit') return words.rows
  const values = [...operation.expect, ...operation.writes].map(({ key }) => rowName('value', key))
  return [...words.rows, ...values]
}
