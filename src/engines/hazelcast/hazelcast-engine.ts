import { randomBytes } from 'node:crypto'
import type { Clock, Timer } from '../../clock.js'
import { ClosedError, IndeterminateError, SignalboxError, UnavailableError } from '../../errors.js'
import type { Guarantees } from '../../guarantees.js'
import type { Claim } from '../../engine/claim.js'
import { readAll } from '../../engine/commit.js'
import { StateMachine, type AnyEffect } from '../../engine/state-machine.js'
import {
  hearWithin,
  type Awaitable,
  type Patience,
  type Poll,
  type Engine,
  type Enqueue,
  type ExtendOrYield,
  type Listener,
  type LockRequest,
  type SessionInfo,
  type Operation,
  type OutcomeOf,
  type Outcomes,
  type ReadOutcome,
  type ReadSet,
  type RequestStatus,
} from '../../engine/contract.js'
import { answered } from './call.js'
import { hazelcastGuarantees } from './guarantees.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { Link, type Package } from './link.js'
import { MapLocks } from './map-locks.js'
import { LET_IN_AFTER, MemberLocks } from './member-locks.js'
import { Members } from './members.js'
import { Table, UnclearError, type Found } from './table.js'
import { OpenTable } from './table-state.js'
import { UnreadableError, type RequestRecord, type TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'
import { newestStamp, SpoiledError, Values } from './values.js'

/** How long an operation is tried: milliseconds. */
const PATIENCE = 10_000
/** Changes that were carried over are taken out of the table's record with the next one, or after so many milliseconds. */
const FORGET_WITHIN = 20
/** What is still not carried over after so long since it was seen is carried over here: milliseconds. */
const CARRY_OVER_AFTER = 2000
const LOOK_PAUSE = 500

type AnyOutcome = Outcomes[keyof Outcomes]

/** An operation that waits for its turn. */
interface Job {
  readonly operation: Operation | undefined
  readonly since: number
  resolve(outcome: Awaitable<AnyOutcome>): void
  reject(error: unknown): void
}

/** What came of a batch. */
interface Decided {
  readonly outcomes: readonly Awaitable<AnyOutcome>[]
  readonly effects: readonly AnyEffect[]
}

/** A grant was given, and what was to be read with it could not be. */
class UnreadError extends Error {
  constructor(readonly failure: Error) {
    super(failure.message)
  }
}

/**
 * Locks and values on Hazelcast, which has nothing but compare-and-set of one entry. So the lock table is one entry, with
 * whatever was committed and is not yet carried over to the entries of values: one compare-and-set decides about the
 * operations of a whole tick. Who has been given an exclusive claim there locks the key of an IMap on top, which is where
 * programs in other languages meet us.
 */
export class HazelcastEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees = hazelcastGuarantees
  readonly tellsWanted = false
  readonly #map: string
  readonly #clock: Clock
  readonly #link: Link
  readonly #table: Table
  readonly #values: Values
  readonly #members: Members
  readonly #locks: MemberLocks
  readonly #watched = new Set<string>()
  readonly #carriedOver = new Map<string, number>()
  #queue: Job[] = []
  #isRunning = false
  #own = new Map<string, RequestRecord>()
  /** The grants that nobody else waits for, and what ends the time for which that can be vouched for. */
  readonly #alone = new Map<string, Timer>()
  /** The keys that somebody has or wants in a record. */
  #taken: { readonly record: TableRecord | undefined; readonly keys: ReadonlySet<string> } = {
    record: undefined,
    keys: new Set(),
  }
  /** The version of the newest change that watchers were told of. */
  #toldOf = 0
  #forgetting: Timer | undefined
  #helping: Timer | undefined
  #looking: Timer | undefined
  #member: SessionInfo | undefined
  #listener: Listener | undefined
  #isOver = false

  constructor(place: HazelcastPlace, hazelcast: Package, clock: Clock) {
    this.name = place.name
    this.#map = place.map
    this.#clock = clock
    const by = randomBytes(6).toString('hex')
    this.#link = new Link(place, by, hazelcast, clock, {
      changed: text => this.#table.heard(text),
      missed: () => this.#lookAgain(),
    })
    const link = () => this.#link.get()
    const table = async () => (await link()).table
    this.#table = new Table(by, table, clock, (record, isNext) => this.#changed(record, isNext))
    const isPending = async (key: string, text: string): Promise<boolean> =>
      (await this.#table.read()).record.pending[key] === text
    this.#values = new Values(link, hazelcast, clock, isPending, () => this.#isOver)
    this.#members = new Members(table, clock)
    this.#locks = new MemberLocks(new MapLocks(async () => (await link()).locks, hazelcast), clock)
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    this.#listener = listener
    try {
      await this.#link.get()
      const { text, record } = await this.#table.read()
      this.#toldOf = text === undefined ? 0 : record.version
      for (const request of await this.#members.deadIn(record)) this.#table.sightings.isOver(request)
      this.#members.join(member)
      this.#member = member
      this.#helpCarryOver(record)
    } catch (error) {
      this.#isOver = true
      await this.#link.close()
      throw this.#failure(error, UnavailableError)
    }
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Awaitable<AnyOutcome> {
    if (!this.#member) return Promise.reject(new ClosedError('the box was closed', { engine: this.name }))
    switch (operation.type) {
      case 'watch':
        this.#watched.add(operation.key)
        return undefined
      case 'unwatch':
        this.#watched.delete(operation.key)
        return undefined
      default:
        return this.#decideAndLock(operation)
    }
  }

  withdraw(request: LockRequest): boolean {
    const at = this.#queue.findIndex(
      ({ operation }) => operation?.type === 'enqueue' && operation.request === request,
    )
    if (at < 0) return false
    const [job] = this.#queue.splice(at, 1)
    job!.resolve({ state: 'busy' })
    return true
  }

  async leave(): Promise<void> {
    const member = this.#member
    if (!member) return
    this.#member = undefined
    this.#forgetting?.cancel()
    this.#helping?.cancel()
    this.#looking?.cancel()
    for (const timer of this.#alone.values()) timer.cancel()
    if (this.#link.now) {
      const left = [
        this.#decide({ type: 'revoke', session: member.session }),
        this.#locks.leaveAll(),
        this.#members.leave(),
        this.#values.allCarriedOver(),
      ]
      // What can't be given back now ends with its lease.
      await answered(Promise.allSettled(left), this.#clock).catch(() => undefined)
    }
    this.#isOver = true
    await this.#link.close()
  }

  /** Has the table decide, and sees to the locks on the members, which follow from what it decided. */
  async #decideAndLock(operation: Operation): Promise<AnyOutcome> {
    switch (operation.type) {
      case 'enqueue':
      case 'poll': {
        // On their way together, when the table is likely to agree.
        const keys = this.#likelyToHold(operation)
        const entering = keys && this.#locks.tryEnter(operation.request.id, keys, operation.lease)
        entering?.catch(() => undefined)
        const standing = await this.#decideOrLeave(operation)
        return this.#enter(operation.request, operation, standing, entering)
      }
      case 'extendOrYield': {
        // On their way together, because most of the time nobody else waits. What is unlocked reaches the member after it.
        const keeping = this.#locks.handOn(operation.request.id, operation.lease)
        keeping.catch(() => undefined)
        const standing = (await this.#decide(operation)) as RequestStatus
        if (standing.state === 'held' && standing.id === operation.request.id)
          return this.#keep(operation, standing, keeping)
        await this.#locks.leave(operation.request.id)
        return this.#enter(operation.next, operation, standing)
      }
      case 'renew': {
        if (!(await this.#decide(operation))) return false
        if (await this.#relocked(operation.request.id, operation.lease)) return true
        const own = this.#own.get(operation.request.id)
        // Downgraded meanwhile: its locks were not lost but given back.
        if (own && !exclusiveKeys(own.claims)) return true
        this.#giveUp(operation.request)
        return false
      }
      case 'downgrade': {
        const isDone = await this.#decide(operation)
        // Readers are none of the members' business.
        await this.#locks.leave(operation.request.id)
        return isDone
      }
      case 'cancel':
      case 'release': {
        const [outcome] = await Promise.all([
          this.#decide(operation),
          this.#locks.leave(operation.request.id),
        ])
        return outcome
      }
      case 'commit': {
        const outcome = await this.#decide(operation)
        const { guard, release } = operation
        // What follows here on the same keys reaches the member after it.
        if (guard && release && (outcome as Outcomes['commit']).state === 'committed')
          void this.#locks.leave(guard.request.id)
        return outcome
      }
      default:
        return this.#decide(operation)
    }
  }

  /** The exclusive keys of what will be granted, as far as is known here; undefined when it will not, or there are none. */
  #likelyToHold(operation: Enqueue | Poll): readonly string[] | undefined {
    if (operation.type === 'poll') {
      const own = this.#own.get(operation.request.id)
      return own?.phase === 'reserved' ? exclusiveKeys(own.claims) : undefined
    }
    const keys = exclusiveKeys(operation.request.claims)
    const record = this.#table.known?.record
    if (record !== this.#taken.record)
      this.#taken = {
        record,
        keys: new Set(record?.requests.flatMap(({ claims }) => claims.map(({ key }) => key))),
      }
    return keys?.some(key => this.#taken.keys.has(key)) ? undefined : keys
  }

  /** What was locked early is given back unless the table agrees. */
  async #decideOrLeave(operation: Enqueue | Poll): Promise<RequestStatus> {
    try {
      const standing = (await this.#decide(operation)) as RequestStatus
      if (standing.state !== 'held') void this.#locks.leave(operation.request.id)
      return standing
    } catch (error) {
      void this.#locks.leave(operation.request.id)
      if (!(error instanceof UnreadError)) throw error
      // Nobody hears of this grant, and whoever asked takes an UnavailableError for none.
      if (error.failure instanceof UnavailableError) this.#giveUp(operation.request)
      throw error.failure
    }
  }

  /** Locks the exclusive keys of what was granted. */
  async #enter(
    request: LockRequest,
    patience: Patience,
    standing: RequestStatus,
    entering?: Promise<boolean>,
  ): Promise<RequestStatus> {
    if (standing.state !== 'held') return standing
    const { id } = request
    const keys = exclusiveKeys(this.#own.get(id)?.claims ?? [])
    if (!keys) return standing
    try {
      if (await (entering ?? this.#locks.tryEnter(id, keys, patience.lease))) return standing
    } catch (error) {
      this.#giveUp(request)
      throw this.#failure(error, IndeterminateError)
    }
    if (patience.wait === 0) {
      await this.#decide({ type: 'cancel', request })
      await this.#locks.leave(id)
      return { state: 'busy' }
    }
    this.#locks.wait(id, () => this.#listener!.wake(id))
    return { state: 'queued', id, place: 0, lookAgain: hearWithin(patience), behind: [] }
  }

  /** Keeps what the table has passed on, unless another program was let in. */
  async #keep(
    operation: ExtendOrYield,
    standing: RequestStatus & { readonly state: 'held' },
    keeping: ReturnType<MemberLocks['handOn']>,
  ): Promise<RequestStatus> {
    const { request, next, lease, wait } = operation
    const { id } = request
    try {
      const kept = await keeping
      if (kept === 'held') return this.#isVouchedFor(id) ? { ...standing, isAlone: true } : standing
      this.#giveUp(request)
      if (kept === 'lost') return { state: 'gone' }
    } catch (error) {
      this.#giveUp(request)
      throw this.#failure(error, IndeterminateError)
    }
    // Whoever waits here stands behind that program, as behind another box.
    return (await this.#decideAndLock({ type: 'enqueue', request: next, lease, wait })) as RequestStatus
  }

  /**
   * Whether nobody else waits for a grant. From then on its box hears of whoever comes to wait, and after a while that it is
   * not known any more. No longer than its locks are kept before other programs are let in, who are not heard of.
   */
  #isVouchedFor(id: string): boolean {
    this.#alone.get(id)?.cancel()
    this.#alone.delete(id)
    if (!isAloneIn(this.#table.known!.record, id)) return false
    const over = (): void => {
      this.#alone.delete(id)
      this.#listener!.wanted(id)
    }
    this.#alone.set(id, this.#clock.after(LET_IN_AFTER, over, false))
    return true
  }

  async #relocked(id: string, lease: number): Promise<boolean> {
    try {
      return await this.#locks.renew(id, lease)
    } catch (error) {
      throw this.#failure(error, IndeterminateError)
    }
  }

  #giveUp(request: LockRequest): void {
    void this.#locks.leave(request.id)
    this.#decide({ type: 'cancel', request }).catch(() => undefined)
  }

  #decide(operation: Operation | undefined): Promise<AnyOutcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ operation, since: this.#clock.now(), resolve, reject })
      if (this.#isRunning) return
      this.#isRunning = true
      queueMicrotask(() => void this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const jobs = this.#queue
      this.#queue = []
      try {
        const { outcomes, effects } = await this.#carryOut(jobs)
        let index = 0
        for (const job of jobs) job.resolve(job.operation ? outcomes[index++]! : undefined)
        this.#tell(effects)
      } catch (error) {
        const failure = this.#failure(error, UnavailableError)
        for (const job of jobs) job.reject(failure)
        // It may have been done, and what it did is told by nobody.
        if (error instanceof UnclearError) this.#lookAgain()
      }
    }
    this.#isRunning = false
  }

  /**
   * Decides the operations over the newest record. Tries again whenever somebody else was faster, together with what was asked
   * meanwhile, which is added to the jobs.
   */
  async #carryOut(jobs: Job[]): Promise<Decided> {
    const until = jobs[0]!.since + PATIENCE
    let wanted = wantedOf(jobs)
    let found = this.#table.known ?? (await this.#table.read())
    // Once the record was read after all of this was asked, whatever is known is new enough.
    let isFresh = false
    let floor = 0
    while (true) {
      const { operations, keys, lease, onlyReads, showsMembers } = wanted
      this.#checkPatience(until)
      // A record without the entry of its session would be taken for that of a dead one.
      if (found.text === undefined) this.#members.isLost()
      await this.#members.promise(lease)
      const { record } = found
      const { values, missing } = this.#valuesFor(keys, record)
      const { epoch } = this.#table.entries
      const reading = this.#values.read(missing)
      // Together: if the record stayed the same, it does not matter which of them was first.
      if (onlyReads && !isFresh) {
        reading.catch(() => undefined)
        await this.#table.read()
        isFresh = true
      }
      const { entries: read, spoiled } = await reading
      for (const [key, text] of read) values.set(key, text)
      const members = showsMembers ? await this.#members.of(record) : new Map<string, SessionInfo>()
      if (newestStamp(read) > Math.max(record.version, floor)) {
        const before = found
        found = await this.#table.read()
        isFresh = true
        // Either somebody has committed since, and has carried it over already, or the cluster has lost the record.
        if (found.text === before.text) floor = newestStamp(read)
        continue
      }
      if (floor === 0) this.#table.entries.add(read, epoch)
      if (this.#table.known !== found) {
        // Meanwhile it was heard of a newer one.
        found = this.#table.known!
        continue
      }
      const effects: AnyEffect[] = []
      const now = this.#clock.now()
      const open = new OpenTable(record, this.#table.sightings, now, floor, values, members)
      const decisions = new StateMachine(open, effect => effects.push(effect))
      const decided = operations.map(
        operation => this.#refused(operation, spoiled) ?? decisions.decide(withoutRead(operation), now),
      )
      // What only reads need not become a change for that.
      if (open.isChanged || operations.length === 0) open.forget(this.#carriedOverIn(record))
      if (open.isChanged) {
        const outcomes = this.#withReads(operations, decided, found, open, values)
        const made = await this.#table.change(found, mark => open.close(mark), until)
        if (made) {
          this.#made(found.record, made.record, values)
          return { outcomes, effects }
        }
        // Not into what may be given up soon.
        if (this.#queue.length > 0 && this.#clock.now() < until - PATIENCE / 2) {
          jobs.push(...this.#queue)
          this.#queue = []
          wanted = wantedOf(jobs)
          isFresh = false
        }
        if (this.#table.known !== found) {
          found = this.#table.known!
          continue
        }
      } else if (isFresh)
        return { outcomes: this.#withReads(operations, decided, found, open, values), effects }
      const before = found
      found = await this.#table.read()
      isFresh = true
      if (!open.isChanged && found.text === before.text)
        return { outcomes: this.#withReads(operations, decided, found, open, values), effects }
    }
  }

  /** Fails an operation that names a key whose entry can't be read; undefined for all others. */
  #refused(operation: Operation, spoiled: ReadonlyMap<string, unknown>): Promise<never> | undefined {
    const key = spoiled.size === 0 ? undefined : keysOf([operation]).find(each => spoiled.has(each))
    if (key === undefined) return undefined
    const refusal = Promise.reject(this.#failure(new SpoiledError(key, spoiled.get(key)), UnavailableError))
    // When it is decided again nobody waits for this.
    refusal.catch(() => undefined)
    return refusal
  }

  /** The entries of these keys that are known, and which have to be read, apart from what is pending in the record. */
  #valuesFor(keys: readonly string[], record: TableRecord) {
    const { entries } = this.#table
    const values = new Map<string, string | undefined>()
    const missing: string[] = []
    for (const key of keys) {
      if (record.pending[key] !== undefined) continue
      if (entries.has(key)) values.set(key, entries.get(key))
      else missing.push(key)
    }
    return { values, missing }
  }

  /**
   * Adds what was to be read with a grant. What is not known is read on the way of the change that grants it: if that goes
   * through, nothing was committed since the record that it was decided over.
   */
  #withReads(
    operations: readonly Operation[],
    outcomes: readonly Awaitable<AnyOutcome>[],
    { record }: Found,
    open: OpenTable,
    values: Map<string, string | undefined>,
  ): readonly Awaitable<AnyOutcome>[] {
    const isGranted = (index: number): boolean =>
      (outcomes[index] as RequestStatus | undefined)?.state === 'held'
    const wanted = operations.flatMap((operation, index) => readOf(operation, isGranted(index)) ?? [])
    if (wanted.length === 0) return outcomes
    const known = this.#valuesFor([...new Set(wanted.flatMap(keysOfRead))], record)
    for (const [key, text] of known.values) if (!values.has(key)) values.set(key, text)
    const missing = known.missing.filter(key => !values.has(key))
    const { epoch } = this.#table.entries
    const reading = missing.length === 0 ? undefined : this.#values.read(missing)
    const fill = async (what: ReadSet): Promise<ReadOutcome> => {
      try {
        const { entries: read, spoiled } = await reading!
        const key = keysOfRead(what).find(each => spoiled.has(each))
        if (key !== undefined) throw new SpoiledError(key, spoiled.get(key))
        if (newestStamp(read) > record.version)
          return (await this.#decide({ type: 'read', ...what })) as ReadOutcome
        this.#table.entries.add(read, epoch)
        for (const [key, text] of read) values.set(key, text)
        return readAll(open, what)
      } catch (error) {
        throw new UnreadError(this.#failure(error, IndeterminateError))
      }
    }
    return operations.map((operation, index) => {
      const standing = outcomes[index]!
      const what = readOf(operation, isGranted(index))
      if (!what) return standing
      if (!reading) return { ...(standing as RequestStatus), read: readAll(open, what) }
      const filled = fill(what).then(read => ({ ...(standing as RequestStatus), read }))
      // When the change does not go through nobody waits for it.
      filled.catch(() => undefined)
      return filled
    })
  }

  /** @throws when the time is over */
  #checkPatience(until: number): void {
    if (this.#clock.now() >= until)
      throw new UnavailableError(`${this.name} did not get to it in time; nothing was done`, {
        engine: this.name,
      })
  }

  /** What was carried over and is still in the record, by key and stamp. */
  #carriedOverIn({ pending }: TableRecord): ReadonlyMap<string, number> {
    for (const [key, stamp] of this.#carriedOver) {
      const text = pending[key]
      if (text === undefined || stampOf(text) > stamp) this.#carriedOver.delete(key)
    }
    return this.#carriedOver
  }

  /** Our own change of the record is made: what it committed has to be carried over. */
  #made(before: TableRecord, record: TableRecord, values: ReadonlyMap<string, string | undefined>): void {
    this.#noteOwn(record)
    this.#tellChanges(record)
    const fresh = Object.entries(record.pending).filter(([key, text]) => before.pending[key] !== text)
    this.#carryOver(fresh, key => before.pending[key] ?? values.get(key))
    this.#helpCarryOver(record)
  }

  #carryOver(
    changes: readonly (readonly [key: string, text: string])[],
    before: (key: string) => string | undefined,
  ): void {
    if (changes.length === 0) return
    this.#values.carryOver(changes, before, (key, stamp) => {
      this.#carriedOver.set(key, stamp)
      if (this.#forgetting || !this.#member) return
      this.#forgetting = this.#clock.after(
        FORGET_WITHIN,
        () => {
          this.#forgetting = undefined
          if (this.#carriedOver.size > 0 && this.#member) this.#decide(undefined).catch(() => undefined)
        },
        false,
      )
    })
  }

  /** Another box has changed the record. */
  #changed(record: TableRecord, isNext: boolean): void {
    const before = this.#own
    this.#noteOwn(record)
    for (const [id, { phase }] of before) {
      const now = this.#own.get(id)
      if (!now) {
        void this.#locks.leave(id)
        this.#listener!.lost(id)
      } else if (phase === 'waiting' && now.phase === 'reserved') this.#listener!.wake(id)
    }
    this.#tellChanges(record)
    // What a record had that was missed may be carried over by now, and stand in none.
    if (!isNext) this.#listener!.missed()
    this.#helpCarryOver(record)
  }

  #noteOwn(record: TableRecord): void {
    const session = this.#member?.session
    this.#own = new Map(record.requests.filter(one => one.session === session).map(one => [one.id, one]))
    // Told again when the time is over: what is heard before the box knows of the grant is lost on it.
    for (const id of this.#alone.keys()) if (!isAloneIn(record, id)) this.#listener!.wanted(id)
  }

  #tellChanges(record: TableRecord): void {
    if (record.version <= this.#toldOf) return
    const since = this.#toldOf
    this.#toldOf = record.version
    if (this.#watched.size === 0) return
    for (const [key, text] of Object.entries(record.pending))
      if (this.#watched.has(key) && stampOf(text) > since) this.#listener!.changed(key)
  }

  /**
   * Whoever committed it may have died before it was carried over. Nothing has to happen for that to be found, and no
   * clock of another process matters: what the record has for that long is seen to.
   */
  #helpCarryOver({ pending }: TableRecord): void {
    if (this.#helping || !this.#member || Object.keys(pending).length === 0) return
    this.#helping = this.#clock.after(
      CARRY_OVER_AFTER,
      () => {
        this.#helping = undefined
        const { record } = this.#table.known!
        const left = Object.entries(record.pending).filter(([key, text]) => pending[key] === text)
        this.#carryOver(left, () => undefined)
        this.#helpCarryOver(record)
      },
      false,
    )
  }

  /** What others are to be told they hear of by the record itself. */
  #tell(effects: readonly AnyEffect[]): void {
    const own = this.#member?.session
    if (own === undefined) return
    for (const effect of effects) {
      if (effect.type === 'changed') continue
      if (effect.session !== own) {
        if (effect.type === 'wake') this.#listener!.reserved(effect.key)
      } else if (effect.type === 'wake') this.#listener!.wake(effect.id)
      else {
        void this.#locks.leave(effect.id)
        this.#listener!.lost(effect.id)
      }
    }
  }

  /** What has happened may not have been heard of. A look that fails is made again: nothing else may ever tell of it. */
  #lookAgain(): void {
    if (!this.#member) return
    this.#table.read().then(
      () => this.#listener!.missed(),
      () => {
        this.#looking?.cancel()
        this.#looking = this.#clock.after(LOOK_PAUSE, () => this.#lookAgain(), false)
      },
    )
  }

  #failure(error: unknown, kind: typeof UnavailableError | typeof IndeterminateError): Error {
    if (error instanceof SignalboxError) return error
    const context = { engine: this.name, cause: error }
    if (error instanceof UnreadableError)
      return new UnavailableError(
        `what stands in the place of the table of ${this.name} was written by another program, or has another layout`,
        context,
      )
    if (error instanceof SpoiledError)
      return new UnavailableError(
        `the value of ${error.key} can't be read: another program has written to ${this.#map}.values`,
        { ...context, key: error.key, cause: error.cause },
      )
    if (error instanceof UnclearError || kind === IndeterminateError)
      return new IndeterminateError(`${this.name} did not answer; what was asked may have been done`, context)
    return new UnavailableError(`${this.name} did not answer; nothing was done`, context)
  }
}

/** Whether a grant keeps all others out, and nobody has asked for any of its keys. */
function isAloneIn({ requests }: TableRecord, id: string): boolean {
  const own = requests.find(each => each.id === id)
  if (!own?.claims.every(({ mode }) => mode === 'exclusive')) return false
  const keys = new Set(own.claims.map(({ key }) => key))
  return requests.every(each => each === own || !each.claims.some(({ key }) => keys.has(key)))
}

/** What has to be done for these jobs. */
function wantedOf(jobs: readonly Job[]) {
  const operations = jobs.flatMap(({ operation }) => operation ?? [])
  return {
    operations,
    keys: keysOf(operations),
    lease: longestLease(operations),
    onlyReads: operations.length > 0 && operations.every(({ type }) => type === 'read'),
    showsMembers: operations.some(({ type }) => type === 'inspect'),
  }
}

/** The store keys that have to be read to decide about the operations. */
function keysOf(operations: readonly Operation[]): string[] {
  const keys = new Set<string>()
  for (const operation of operations) {
    if (operation.type === 'read') for (const key of keysOfRead(operation)) keys.add(key)
    if (operation.type !== 'commit') continue
    for (const { key } of operation.expect) keys.add(key)
    for (const { key } of operation.writes) keys.add(key)
    for (const { key } of operation.record) keys.add(key)
  }
  return [...keys]
}

function keysOfRead({ keys, ids }: ReadSet): string[] {
  return [...keys, ...ids.map(({ key }) => key)]
}

/** What is to be read with a grant, if there is one. */
function readOf(operation: Operation, isGranted: boolean): ReadSet | undefined {
  const canGrant = operation.type === 'enqueue' || operation.type === 'poll'
  return canGrant && isGranted ? operation.read : undefined
}

function withoutRead(operation: Operation): Operation {
  return operation.type === 'enqueue' || operation.type === 'poll'
    ? { ...operation, read: undefined }
    : operation
}

/** Undefined when there are none. */
function exclusiveKeys(claims: readonly Claim[]): readonly string[] | undefined {
  const keys = claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
  return keys.length === 0 ? undefined : keys
}

function longestLease(operations: readonly Operation[]): number {
  let longest = 0
  for (const operation of operations) if ('lease' in operation) longest = Math.max(longest, operation.lease)
  return longest
}
