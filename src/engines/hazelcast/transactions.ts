import type { Clock } from '../../clock.js'
import type { Operation, ReadSet, SessionInfo } from '../../engine/contract.js'
import type { EngineState, Purpose } from '../../engine/kit/state-engine.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { UnavailableError } from '../../errors.js'
import { WriteBack } from './write-back.js'
import { failureOf, SpoiledError, UnclearError } from './failures.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { OpenTable } from './open-table.js'
import type { Sessions } from './sessions.js'
import type { Found, Table } from './table.js'
import type { TableRecord } from './table-record.js'
import { newestStamp, type Values } from './values.js'

/** How long an operation is tried: milliseconds. */
const PATIENCE = 10_000

/**
 * After this many tries, and this many milliseconds, the record is locked for the next tries. A box that is far from
 * the members would be overtaken by near ones each time.
 */
const LOCK_AFTER = { tries: 2, time: 50 }

/** The entries of store keys; undefined for keys without one. */
type Entries = ReadonlyMap<string, string | undefined>

/** The keys whose entries can't be read, with the reason. */
type SpoiledKeys = ReadonlyMap<string, unknown>

/** Work over the state that waits to be carried out. */
interface Job {
  readonly work: (state: OpenTable) => unknown
  readonly purpose: Purpose | undefined
  readonly since: number
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

/** Gives a job its outcome, once that is kept. */
type Answer = () => void

/** Jobs that are carried out together, from the first try to the last. */
interface Attempt {
  readonly jobs: Job[]
  /** When they are given up: clock time. */
  readonly until: number
  /** Whether a record was read after the last of the jobs had come. */
  isFresh: boolean
  /** Whether no other box can change the record. */
  isLocked: boolean
  /** Versions up to this one are used, although the record does not say so. */
  floor: number
}

/** The record, opened for an attempt. */
interface Opened {
  readonly state: OpenTable
  readonly entries: Entries
  readonly spoiled: SpoiledKeys
}

/** Changes the state in one step: the jobs of a tick share one compare-and-set of the record. */
export class Transactions {
  readonly writeBack: WriteBack
  readonly #place: HazelcastPlace
  readonly #table: Table
  readonly #values: Values
  readonly #sessions: Sessions
  readonly #clock: Clock
  readonly #unclear: () => void
  readonly #batch = new TickBatcher<Job>(() => this.#run())

  /** @param unclear is called when it was not found out whether a change of this box was made. */
  constructor(
    place: HazelcastPlace,
    table: Table,
    values: Values,
    sessions: Sessions,
    clock: Clock,
    unclear: () => void,
  ) {
    this.#place = place
    this.#table = table
    this.#values = values
    this.#sessions = sessions
    this.#clock = clock
    this.#unclear = unclear
    this.writeBack = new WriteBack(table, values, clock, () => this.#forget())
  }

  /** Calls `work` with the state, perhaps several times, and keeps what the last call changed. */
  run<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    return this.#add(work, purpose) as Promise<T>
  }

  /** Takes the changes out of the record that are carried over. Those that stay leave it with a later change. */
  #forget(): void {
    this.#add(state => state.forget(), undefined).catch(() => undefined)
  }

  #add(work: (state: OpenTable) => unknown, purpose: Purpose | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#batch.add({ work, purpose, since: this.#clock.now(), resolve, reject })
    })
  }

  async #run(): Promise<void> {
    const jobs = this.#batch.take()
    try {
      for (const answer of await this.#carryOut(jobs)) answer()
    } catch (error) {
      const failure = failureOf(error, this.#place, UnavailableError)
      for (const job of jobs) job.reject(failure)
      if (error instanceof UnclearError) this.#unclear()
    }
  }

  /** Carries the jobs out over the newest record. While other boxes are faster, jobs that came meanwhile join them. */
  async #carryOut(jobs: Job[]): Promise<Answer[]> {
    const until = jobs[0]!.since + PATIENCE
    const attempt: Attempt = { jobs, until, isFresh: false, isLocked: false, floor: 0 }
    try {
      return await this.#tryUntilDone(attempt)
    } finally {
      if (attempt.isLocked) this.#table.unlock()
    }
  }

  async #tryUntilDone(attempt: Attempt): Promise<Answer[]> {
    const { jobs } = attempt
    const began = this.#clock.now()
    for (let tries = 0; ; tries++) {
      this.#checkPatience(attempt)
      if (!attempt.isLocked && tries >= LOCK_AFTER.tries && this.#clock.now() - began >= LOCK_AFTER.time)
        attempt.isLocked = await this.#table.lock()
      const found = this.#table.known ?? (await this.#table.read())
      const opened = await this.#open(found, attempt)
      if (!opened) continue
      const { state, entries, spoiled } = opened
      const answers = jobs.map(job => this.#decide(job, state, spoiled))
      if (state.isChanged) {
        if (await this.#keep(found, attempt, state, entries)) return answers
      } else if (attempt.isFresh || (await this.#isNewest(found, attempt))) return answers
    }
  }

  /** Opens the record with all that the jobs need. Undefined: there is a newer one. */
  async #open(found: Found, attempt: Attempt): Promise<Opened | undefined> {
    const { record } = found
    const needs = needsOf(attempt.jobs)
    // Other boxes take a session for dead that has requests in the record and no entry.
    if (found.text === undefined) this.#sessions.entriesLost()
    await this.#sessions.outlive(needs.lease)
    const sessions = needs.showsSessions ? await this.#sessions.of(record) : NO_SESSIONS
    const { epoch } = this.#table.entries
    const { entries, missing } = this.#knownEntries(needs.keys, record)
    const reading = this.#values.read(missing)
    if (needs.isReadOnly && !attempt.isFresh) {
      // Both at once: while the record stays the same it does not matter which was read first.
      reading.catch(() => undefined)
      await this.#table.read()
      attempt.isFresh = true
    }
    const { entries: read, spoiled } = await reading
    const stamp = newestStamp(read)
    if (stamp > Math.max(record.version, attempt.floor)) {
      // Either another box has committed and carried over since, or the cluster has lost the record.
      if (await this.#isNewest(found, attempt)) attempt.floor = stamp
      return undefined
    }
    if (attempt.floor === 0) this.#table.entries.add(read, epoch)
    // A member has reported a newer record meanwhile.
    if (this.#table.known !== found) return undefined
    for (const [key, text] of read) entries.set(key, text)
    const { sightings } = this.#table
    const carriedOver = this.writeBack.done(record)
    const surroundings = { sightings, floor: attempt.floor, entries, sessions, carriedOver }
    return { state: new OpenTable(record, surroundings, this.#clock), entries, spoiled }
  }

  /** Changes the record to the state. False: another box was faster. */
  async #keep(found: Found, attempt: Attempt, state: OpenTable, entries: Entries): Promise<boolean> {
    const { until, jobs } = attempt
    state.forget()
    const made = await this.#table.change(found, mark => state.close(mark), until)
    if (made) {
      this.writeBack.begin(found.record, made.record, entries)
      return true
    }
    // No job joins others that are soon given up.
    if (this.#batch.size > 0 && this.#clock.now() < until - PATIENCE / 2) {
      jobs.push(...this.#batch.take())
      attempt.isFresh = false
    }
    if (this.#table.known === found) await this.#isNewest(found, attempt)
    return false
  }

  /** Reads the record. Whether it is still the one that was found. */
  async #isNewest({ text }: Found, attempt: Attempt): Promise<boolean> {
    const newest = await this.#table.read()
    attempt.isFresh = true
    return newest.text === text
  }

  #checkPatience({ until }: Attempt): void {
    if (this.#clock.now() < until) return
    const { name } = this.#place
    throw new UnavailableError(`${name} was too busy; the operation was not applied`, { engine: name })
  }

  /** The entries that are known, and the keys whose entries have to be read. A pending entry is in the record. */
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

  /** Fails a job that needs an entry which can't be read, and carries out any other. */
  #decide(job: Job, state: OpenTable, spoiled: SpoiledKeys): Answer {
    const key = spoiled.size === 0 ? undefined : keysOf(job.purpose).find(each => spoiled.has(each))
    if (key !== undefined) {
      const failure = failureOf(new SpoiledError(key, spoiled.get(key)), this.#place, UnavailableError)
      return () => job.reject(failure)
    }
    const outcome = job.work(state)
    return () => job.resolve(outcome)
  }
}

const NO_SESSIONS: ReadonlyMap<string, SessionInfo> = new Map()

/** What has to be known to carry out the jobs. */
function needsOf(jobs: readonly Job[]) {
  const purposes = jobs.map(({ purpose }) => purpose)
  return {
    /** The store keys whose entries are needed. */
    keys: [...new Set(purposes.flatMap(keysOf))],
    /** The longest lease that may be given. */
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
