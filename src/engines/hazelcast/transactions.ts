import type { Clock } from '../../clock.js'
import type { Operation, ReadSet, SessionInfo } from '../../engine/contract.js'
import type { EngineState, Purpose } from '../../engine/kit/state-engine.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { UnavailableError } from '../../errors.js'
import { WriteBack } from './write-back.js'
import { failureOf, DamagedEntryError, UnclearError } from './failures.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import type { Link } from './link.js'
import { OpenTable } from './open-table.js'
import type { Sessions } from './sessions.js'
import type { Found, Table } from './table.js'
import type { TableRecord } from './table-record.js'
import { newestStamp, type Values } from './values.js'

/** Maximum time to try an operation, in milliseconds. */
const TIMEOUT = 10_000
/** Maximum time to find out whether an operation was applied whose reply is missing, in milliseconds. */
const REPLY_TIMEOUT = 5000

/**
 * After this many tries and this many milliseconds, the record is locked for each further try. Otherwise boxes closer
 * to the members would always be faster than a distant one.
 */
const LOCK_AFTER = { tries: 2, time: 50 }

/** The entries of store keys; undefined for keys without one. */
type Entries = ReadonlyMap<string, string | undefined>

/** The keys whose entries can't be read, with the reason. */
type DamagedKeys = ReadonlyMap<string, unknown>

/** Work on the state that waits to be done. */
interface Job {
  readonly work: (state: OpenTable) => unknown
  readonly purpose: Purpose | undefined
  readonly since: number
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

/** Settles a job, once its changes are saved. */
type Answer = () => void

/** Jobs that are done together, from the first try to the last. */
interface Attempt {
  readonly jobs: Job[]
  /** When to give up, as clock time. */
  readonly until: number
  /** Whether a record was read after the last of the jobs arrived. */
  isFresh: boolean
  /** Versions up to this one are in use, although the record does not show it. */
  floor: number
}

/** The record, opened for an attempt. */
interface Opened {
  readonly state: OpenTable
  readonly entries: Entries
  readonly damaged: DamagedKeys
}

/** Changes the state in one step: the jobs of a tick share one compare-and-set of the record. */
export class Transactions {
  readonly writeBack: WriteBack
  readonly #place: HazelcastPlace
  readonly #link: Link
  readonly #table: Table
  readonly #values: Values
  readonly #sessions: Sessions
  readonly #clock: Clock
  readonly #unclear: () => void
  readonly #batch = new TickBatcher<Job>(() => this.#run())

  /** @param unclear is called if it is unknown whether a change of this box was applied. */
  constructor(
    place: HazelcastPlace,
    link: Link,
    table: Table,
    values: Values,
    sessions: Sessions,
    clock: Clock,
    unclear: () => void,
  ) {
    this.#place = place
    this.#link = link
    this.#table = table
    this.#values = values
    this.#sessions = sessions
    this.#clock = clock
    this.#unclear = unclear
    this.writeBack = new WriteBack(table, values, clock, () => this.#removeWritten())
  }

  /** Calls `work` with the state, perhaps several times, and saves what the last call changed. */
  run<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    return this.#add(work, purpose) as Promise<T>
  }

  /** Removes the changes that were written back from the record. If that fails, a later change does it. */
  async #removeWritten(): Promise<void> {
    await this.#add(state => state.removeWritten(), undefined).catch(() => undefined)
  }

  #add(work: (state: OpenTable) => unknown, purpose: Purpose | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#batch.add({ work, purpose, since: this.#clock.now(), resolve, reject })
    })
  }

  async #run(): Promise<void> {
    const jobs = this.#batch.take()
    try {
      for (const answer of await this.#execute(jobs)) answer()
    } catch (error) {
      const failure = failureOf(error, this.#place, UnavailableError)
      for (const job of jobs) job.reject(failure)
      if (error instanceof UnclearError) this.#unclear()
    }
  }

  /** Does the jobs on the newest record. If other boxes are faster, jobs that have arrived since join the next try. */
  async #execute(jobs: Job[]): Promise<Answer[]> {
    const until = jobs[0]!.since + TIMEOUT
    const attempt: Attempt = { jobs, until, isFresh: false, floor: 0 }
    try {
      return await this.#tryUntilDone(attempt)
    } finally {
      this.#table.unlock()
    }
  }

  async #tryUntilDone(attempt: Attempt): Promise<Answer[]> {
    const { jobs } = attempt
    const began = this.#clock.now()
    for (let tries = 0; ; tries++) {
      this.#checkTimeout(attempt)
      if (tries >= LOCK_AFTER.tries && this.#clock.now() - began >= LOCK_AFTER.time) await this.#table.lock()
      const { found, opened } = await this.#link.repeat(async () => {
        const newest = this.#table.known ?? (await this.#table.read())
        return { found: newest, opened: await this.#open(newest, attempt) }
      }, attempt.until)
      if (!opened) continue
      const { state, entries, damaged } = opened
      const answers = jobs.map(job => this.#decide(job, state, damaged))
      if (state.isChanged) {
        // A contention shows that members reply.
        const since = tries > 0 ? this.#clock.now() : jobs[0]!.since
        if (await this.#save(found, attempt, state, entries, since + REPLY_TIMEOUT)) return answers
      } else if (attempt.isFresh || (await this.#isNewest(found, attempt))) return answers
    }
  }

  /** Opens the record with everything that the jobs need. Returns undefined if there is a newer one. */
  async #open(found: Found, attempt: Attempt): Promise<Opened | undefined> {
    const { record } = found
    const needs = needsOf(attempt.jobs)
    // Other boxes consider a session dead if it has requests in the record and no entry.
    if (found.text === undefined) this.#sessions.entriesLost()
    await this.#sessions.extendFor(needs.lease)
    const sessions = needs.showsSessions ? await this.#sessions.of(record) : NO_SESSIONS
    const { epoch } = this.#table.entries
    const { entries, missing } = this.#knownEntries(needs.keys, record)
    const reading = this.#values.read(missing)
    if (needs.isReadOnly && !attempt.isFresh) {
      // Both at once: if the record is unchanged, it does not matter which was read first.
      reading.catch(() => undefined)
      await this.#table.read()
      attempt.isFresh = true
    }
    const { entries: read, damaged } = await reading
    const stamp = newestStamp(read)
    if (stamp > Math.max(record.version, attempt.floor)) {
      // Either another box has committed and written back since, or the cluster has lost the record.
      if (await this.#isNewest(found, attempt)) attempt.floor = stamp
      return undefined
    }
    if (attempt.floor === 0) this.#table.entries.add(read, epoch)
    // A member has reported a newer record in the meantime.
    if (this.#table.known !== found) return undefined
    for (const [key, text] of read) entries.set(key, text)
    const { sightings } = this.#table
    const writtenBack = this.writeBack.done(record)
    const context = { sightings, floor: attempt.floor, entries, sessions, writtenBack }
    return { state: new OpenTable(record, context, this.#clock), entries, damaged }
  }

  /**
   * Saves the state in the record. Returns false if another box was faster.
   * @param replyBy until when to find out whether it was saved, as clock time.
   */
  async #save(
    found: Found,
    attempt: Attempt,
    state: OpenTable,
    entries: Entries,
    replyBy: number,
  ): Promise<boolean> {
    const { until, jobs } = attempt
    state.removeWritten()
    const made = await this.#table.change(found, mark => state.close(mark), replyBy)
    if (made) {
      this.writeBack.begin(found.record, made.record, entries)
      return true
    }
    // No job joins others whose time is running out.
    if (this.#batch.size > 0 && this.#clock.now() < until - TIMEOUT / 2) {
      jobs.push(...this.#batch.take())
      attempt.isFresh = false
    }
    if (this.#table.known === found) await this.#isNewest(found, attempt)
    return false
  }

  /** Reads the record. Returns whether it is still the one that was found. */
  async #isNewest({ text }: Found, attempt: Attempt): Promise<boolean> {
    const newest = await this.#link.repeat(() => this.#table.read(), attempt.until)
    attempt.isFresh = true
    return newest.text === text
  }

  #checkTimeout({ until }: Attempt): void {
    if (this.#clock.now() < until) return
    const { name } = this.#place
    throw new UnavailableError(`${name} was too busy; the operation was not applied`, { engine: name })
  }

  /** Returns the known entries, and the keys whose entries must be read. Pending entries are in the record. */
  #knownEntries(keys: readonly string[], { pending }: TableRecord) {
    const known = this.#table.entries
    const entries = new Map<string, string | undefined>()
    const missing: string[] = []
    for (const key of keys) {
      if (pending[key] !== undefined) continue
      if (known.has(key)) entries.set(key, known.get(key))
      else missing.push(key)
    }
    return { entries, missing }
  }

  /** Fails a job that needs an entry that can't be read, and does any other. */
  #decide(job: Job, state: OpenTable, damaged: DamagedKeys): Answer {
    const key = damaged.size === 0 ? undefined : keysOf(job.purpose).find(each => damaged.has(each))
    if (key !== undefined) {
      const failure = failureOf(new DamagedEntryError(key, damaged.get(key)), this.#place, UnavailableError)
      return () => job.reject(failure)
    }
    const outcome = job.work(state)
    return () => job.resolve(outcome)
  }
}

const NO_SESSIONS: ReadonlyMap<string, SessionInfo> = new Map()

function needsOf(jobs: readonly Job[]) {
  const purposes = jobs.map(({ purpose }) => purpose)
  return {
    /** The store keys whose entries are needed. */
    keys: [...new Set(purposes.flatMap(keysOf))],
    /** The longest lease that may be granted. */
    lease: Math.max(0, ...purposes.map(purpose => (purpose && 'lease' in purpose ? purpose.lease : 0))),
    isReadOnly: purposes.every(purpose => purpose?.type === 'read'),
    showsSessions: purposes.some(purpose => purpose?.type === 'inspect'),
  }
}

/** The store keys whose entries an operation needs. */
function keysOf(purpose: Purpose | undefined): string[] {
  const operation = purpose as Operation | undefined
  switch (operation?.type) {
    case 'enqueue':
    case 'checkIn':
      return operation.read ? keysOfRead(operation.read) : []
    case 'read':
      return keysOfRead(operation)
    case 'commit':
      return [...operation.expect, ...operation.writes, ...operation.record].map(({ key }) => key)
    default:
      return []
  }
}

function keysOfRead({ keys, ids }: ReadSet): string[] {
  return [...keys, ...ids.map(({ key }) => key)]
}
