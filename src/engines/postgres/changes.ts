import type { Clock } from '../../clock.js'
import type { SessionInfo } from '../../engine/contract.js'
import type { EngineState, Purpose } from '../../engine/kit/state-engine.js'
import { requestsIn } from '../../engine/kit/requests-in.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { arrayText, SqlError, type Query, type StatementRunner } from './clients/sql-client.js'
import { LIMITS, LOCKS, markOf, namesFor } from './names.js'
import { PostgresState, type Draft } from './postgres-state.js'
import { Rows, type Row } from './rows.js'
import type { ServerClock, ServerTime } from './server-clock.js'
import type { Statements } from './statements.js'

/**
 * How far the server's clock may be past the time of a decision: milliseconds. Leases are longer by as much for the
 * server than for their holders.
 */
export const SLACK = 250

/** So many operations are decided together. */
const MOST_TOGETHER = 256
/** After so many decisions by rows that were out of date, the rows are locked while it is decided. */
const MOST_OUTDATED = 3
/** So many attempts are made, and rows are looked for so often in each. */
const MOST_ATTEMPTS = 50
/** Another transaction was in the way, and nothing was done. */
const AGAIN = ['40001', '40P01']

/** A transaction elsewhere holds a row for longer than the server waits for it. */
const ROW_IS_HELD = '55P03'
/** An operation waits for such a row for so long, and tries after pauses of so long: milliseconds. */
const MOST_HELD = 2000
const HELD_PAUSE = 100

interface Job {
  readonly work: (state: EngineState) => unknown
  readonly purpose: Purpose
  /** When it was asked for: clock time. */
  readonly since: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The results of decisions that are written. */
type Results = readonly { readonly job: Job; readonly result: unknown }[]

/** The answer of a change. */
type Answer =
  | {
      readonly state: 'done'
      readonly now: number
      readonly moved?: readonly (readonly [from: number, to: number])[] | null
    }
  | { readonly state: 'clock'; readonly now: number }
  | { readonly state: 'bound'; readonly now: number; readonly free: readonly number[] }
  | { readonly state: 'recorded'; readonly now: number; readonly marks: readonly string[] }
  | {
      readonly state: 'stale'
      readonly now: number
      readonly rows: readonly (readonly [id: number, version: number | null, data: string | null])[] | null
    }

/** The answer of a look at rows. */
interface Found {
  readonly now: number
  readonly rows: readonly (readonly [name: string, id: number, version: number, data: string])[] | null
  readonly recorded?: readonly string[] | null
}

/**
 * Decides the operations that one tick brings by the rows as they were last seen, and writes what comes of them by one
 * statement, if the rows are still so. If not, the statement tells how they are, and it is decided again.
 */
export class Changes {
  readonly #sql: StatementRunner
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #serverClock: ServerClock
  /** Whether statements are part of a transaction of the caller's. */
  readonly #isWithin: boolean
  readonly #rows = new Rows()
  readonly #state: PostgresState
  readonly #batcher = new TickBatcher<Job>(() => this.#next())
  /** The rows that the last look has found. Nothing has to be compared when a decision only reads these. */
  readonly #fresh = new Set<Row>()
  /** What stands for the ids of which the last look has told whether they are recorded. */
  #freshMarks: readonly string[] = []
  #moment: ServerTime = { at: 0, earliest: 0, latest: 0 }
  /** What waits for a row that a transaction elsewhere holds, in the order of the calls. */
  readonly #held: Job[] = []
  /** Rows that other boxes have told of. They are taken on between two decisions. */
  readonly #told: (readonly [id: number, version: number, data: string])[] = []

  constructor(
    sql: StatementRunner,
    statements: Statements,
    own: () => SessionInfo,
    clock: Clock,
    serverClock: ServerClock,
    isWithin: boolean,
  ) {
    this.#sql = sql
    this.#statements = statements
    this.#clock = clock
    this.#serverClock = serverClock
    this.#isWithin = isWithin
    this.#state = new PostgresState(this.#rows, own)
  }

  /** When the present decision is made. */
  get moment(): ServerTime {
    return this.#moment
  }

  /** The row with this request, as it was last seen; undefined when it is not known. */
  rowWith(request: string): Row | undefined {
    const name = this.#state.nameOf(request)
    return name === undefined ? undefined : this.#rows.get(name)
  }

  /** Another box tells what it has made of a row. */
  tell(id: number, version: number, data: string): void {
    this.#told.push([id, version, data])
  }

  /** Rejects with a SqlError. */
  run<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const since = this.#clock.now()
      this.#batcher.add({ work, purpose, since, resolve: resolve as Job['resolve'], reject })
    })
  }

  async #next(): Promise<void> {
    await this.#carryOut(this.#batcher.take(MOST_TOGETHER))
  }

  async #carryOut(all: readonly Job[]): Promise<void> {
    const jobs = all.filter(job => !this.#isHeldBack(job))
    if (jobs.length === 0) return
    try {
      this.#rows.trim()
      this.#state.forgetFound()
      if (this.#told.length > 0) this.#state.discard()
      for (const row of this.#told.splice(0)) this.#rows.told(...row)
      for (const { job, result } of await this.#decided(jobs)) job.resolve(result)
    } catch (error) {
      this.#state.discard()
      const isRefused = error instanceof SqlError && error.code !== undefined && !error.isUnclear
      // What the server refuses is refused because of one of the operations. The others are carried out without it.
      if (isRefused && jobs.length > 1) for (const job of jobs) await this.#carryOut([job])
      else for (const job of jobs) this.#failed(job, error)
    }
  }

  /** What waits for a row that a transaction elsewhere holds is tried again, and all else goes on meanwhile. */
  #failed(job: Job, error: unknown): void {
    const isHeld = error instanceof SqlError && error.code === ROW_IS_HELD && !this.#isWithin
    if (isHeld && this.#clock.now() - job.since < MOST_HELD) this.#hold(job)
    else job.reject(error)
  }

  #hold(job: Job): void {
    if (this.#held.push(job) > 1) return
    this.#clock.after(HELD_PAUSE, () => this.#batcher.putBack(this.#held.splice(0)), true)
  }

  /** Whether a request, or a write without a lock, has to wait behind an earlier one that waits for one of its rows. */
  #isHeldBack(job: Job): boolean {
    if (this.#held.length === 0 || !hasPlace(job)) return false
    const names = new Set(namesFor(job.purpose))
    const isBehind = this.#held.some(
      held => hasPlace(held) && namesFor(held.purpose).some(name => names.has(name)),
    )
    if (isBehind) this.#hold(job)
    return isBehind
  }

  /** Decides, and writes what was decided. */
  async #decided(jobs: readonly Job[]): Promise<Results> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      try {
        await this.#prepare(jobs)
        const results =
          attempt < MOST_OUTDATED ? await this.#attempt(jobs, this.#sql.query) : await this.#locked(jobs)
        if (results) return results
      } catch (error) {
        if (!(error instanceof SqlError) || !AGAIN.includes(error.code!)) throw error
        this.#state.discard()
      }
    }
    throw undecided()
  }

  /**
   * Decides while the rows are locked. Takes a way to the server and back more, and nothing can come in between: a
   * process that is far away from the server would never be first among those that are near.
   */
  #locked(jobs: readonly Job[]): Promise<Results | undefined> {
    return this.#sql.transaction(async query => {
      const { read } = this.#state
      const ids = idsOf(read)
      const asked = this.#clock.now()
      const values = [arrayText(ids), arrayText(versionsOf(read))]
      this.#heard(JSON.parse((await query(this.#statements.lock, values)) as string) as Answer, asked)
      return this.#attempt(jobs, query, ids)
    })
  }

  /** Reads what the operations need and is not known, or has to be read anew. */
  async #prepare(jobs: readonly Job[]): Promise<void> {
    this.#fresh.clear()
    this.#freshMarks = []
    this.#state.forgetAbsent()
    for (const { purpose } of jobs) {
      if (purpose.type === 'revoke') await this.#find(LOCKS, JSON.stringify(purpose.session))
      if (purpose.type === 'inspect' && !purpose.exact) await this.#find(LOCKS, '')
      if (purpose.type === 'limiters') await this.#find(LIMITS, '')
    }
    const names = new Set<string>()
    const read = new Set<string>()
    const marks = new Set<string>()
    for (const { purpose } of jobs) {
      for (const name of namesFor(purpose)) {
        if (purpose.type === 'read' || purpose.type === 'inspect') read.add(name)
        else if (!this.#rows.get(name)) names.add(name)
      }
      if (purpose.type === 'read') for (const id of purpose.ids) marks.add(markOf(id))
    }
    if (names.size + read.size + marks.size > 0 || !this.#serverClock.isKnown)
      await this.#look([...names], this.#sql.query, [...read], [...marks])
  }

  /**
   * One attempt: undefined when the rows were out of date.
   * @param locked the rows that the transaction has locked, where it has.
   */
  async #attempt(
    jobs: readonly Job[],
    query: Query,
    locked?: readonly number[],
  ): Promise<Results | undefined> {
    const results = await this.#decideWithAll(jobs, query)
    const draft = this.#state.draft()
    if (this.#isKnown(draft)) return results
    // Two transactions that lock further rows could wait for each other. The next attempt locks all of them in order.
    if (locked && draft.read.some(({ id }) => !locked.includes(id))) return undefined
    const asked = this.#clock.now()
    const answer = JSON.parse(
      (await query(this.#statements.change, valuesOf(draft, this.#moment.at, this.#isWithin))) as string,
    ) as Answer
    if (answer.state === 'done') {
      this.#serverClock.told(answer.now, asked)
      for (const [row, data] of draft.written) Object.assign(row, { data, version: draft.next })
      for (const [from, to] of answer.moved ?? []) this.#rows.moved(from, to)
      return results
    }
    if (answer.state === 'clock') this.#serverClock.forget()
    if (answer.state === 'bound')
      this.#state.bind(idsOf(draft.granted).filter(id => !answer.free.includes(id)))
    if (answer.state === 'recorded') this.#state.found(answer.marks)
    this.#heard(answer, asked)
    return undefined
  }

  /** Whether a draft only reads what the last look has read. */
  #isKnown({ read, written, marks, looked }: Draft): boolean {
    return (
      written.size + marks.length === 0 &&
      read.every(row => this.#fresh.has(row)) &&
      looked.every(mark => this.#freshMarks.includes(mark))
    )
  }

  /** Decides as often as rows turn out to be missing. */
  async #decideWithAll(jobs: readonly Job[], query: Query): Promise<Results> {
    for (let look = 0; look < MOST_ATTEMPTS; look++) {
      this.#moment = this.#serverClock.now()
      this.#state.begin(this.#moment.at)
      const results = this.#decide(jobs)
      if (results) return results
      await this.#look([...this.#state.missing], query)
    }
    throw undecided()
  }

  /** Undefined when rows are missing. */
  #decide(jobs: readonly Job[]): Results | undefined {
    const { missing } = this.#state
    try {
      const results = jobs.map(job => {
        this.#state.about(requestsIn(job.purpose))
        return { job, result: job.work(this.#state) }
      })
      return missing.size === 0 ? results : undefined
    } catch (error) {
      // A decision without all rows may fail in any way.
      if (missing.size === 0) throw error
      return undefined
    }
  }

  /**
   * Reads rows, and tells which of these ids are recorded.
   * @param names of rows, which are made if they are missing. @param read names of rows that may be missing.
   */
  async #look(
    names: readonly string[],
    query: Query,
    read: readonly string[] = [],
    marks: readonly string[] = [],
  ): Promise<void> {
    const asked = this.#clock.now()
    const text = await query(this.#statements.rows, [
      arrayText([...names, ...read]),
      arrayText(names),
      arrayText(marks),
      String(this.#isWithin),
    ])
    const found = JSON.parse(text as string) as Found
    this.#seen(found, asked)
    this.#freshMarks = marks
    this.#state.found(found.recorded ?? [])
    for (const name of read) if (!this.#rows.get(name)) this.#state.absent(name)
  }

  async #find(prefix: string, part: string): Promise<void> {
    const asked = this.#clock.now()
    // Those that are not found are empty, or are of no interest here.
    this.#rows.forgetAll(prefix)
    this.#seen(
      JSON.parse((await this.#sql.query(this.#statements.found, [prefix, part])) as string) as Found,
      asked,
    )
  }

  #seen({ now, rows }: Found, asked: number): void {
    this.#serverClock.told(now, asked)
    this.#state.discard()
    for (const row of rows ?? []) this.#fresh.add(this.#rows.seen(...row))
  }

  #heard(answer: Answer, asked: number): void {
    this.#serverClock.told(answer.now, asked)
    this.#state.discard()
    this.#fresh.clear()
    this.#freshMarks = []
    if (answer.state === 'stale') for (const row of answer.rows ?? []) this.#rows.changed(...row)
  }
}

/** Whether it matters to the caller what comes first. */
function hasPlace({ purpose }: Job): boolean {
  return purpose.type === 'enqueue' || (purpose.type === 'commit' && !purpose.guard)
}

function undecided(): SqlError {
  return new SqlError(
    `no decision within ${MOST_ATTEMPTS} attempts: other boxes change the same rows, or a queue was altered by hand`,
    undefined,
    false,
    undefined,
  )
}

function idsOf(rows: readonly Row[]): number[] {
  return rows.map(({ id }) => id)
}

function versionsOf(rows: readonly Row[]): number[] {
  return rows.map(({ version }) => version)
}

/** The values of the statement that writes a draft. */
function valuesOf(
  { read, written, granted, marks, looked, next, isDurable }: Draft,
  at: number,
  isWithin: boolean,
): string[] {
  return [
    // A server that tells whole milliseconds, as PGlite does, would be behind a fraction of one.
    String(Math.floor(at)),
    String(SLACK),
    String(isDurable),
    String(isWithin),
    arrayText(idsOf(read)),
    arrayText(versionsOf(read)),
    arrayText(read.map(row => written.get(row) ?? null)),
    String(next),
    arrayText(idsOf(granted)),
    arrayText(looked),
    arrayText(marks.map(({ mark }) => mark)),
    arrayText(marks.map(({ until }) => until)),
    arrayText(marks.map(({ mustBeNew }) => mustBeNew)),
  ]
}
