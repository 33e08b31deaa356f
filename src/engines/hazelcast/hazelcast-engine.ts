import { randomBytes } from 'node:crypto'
import type { Clock, Timer } from '../../clock.js'
import type { Awaitable, List, Listener, Operation, OutcomeOf, SessionInfo } from '../../engine/contract.js'
import { firstKeys } from '../../engine/kit/first-keys.js'
import { StateEngine, type EngineState, type Hint, type Purpose } from '../../engine/kit/state-engine.js'
import { UnavailableError } from '../../errors.js'
import { answered, RETRY_PAUSE } from './call.js'
import { failureOf } from './failures.js'
import { GrantLocks } from './grant-locks.js'
import { hazelcastGuarantees } from './guarantees.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { Link, type Package } from './link.js'
import { MapLocks } from './map-locks.js'
import { MemberLocks } from './member-locks.js'
import { memberTime } from './member-time.js'
import { OwnRequests } from './own-requests.js'
import { Sessions } from './sessions.js'
import { Table, type TableChange } from './table.js'
import type { TableRecord } from './table-record.js'
import { Transactions } from './transactions.js'
import { stampOf } from './value-entry.js'
import { Values } from './values.js'

/**
 * Locks and values on Hazelcast, which offers only compare-and-set of one entry. So one entry is the lock table,
 * together with the committed changes that are not yet written back to the entries of values. One compare-and-set
 * decides the operations of a whole tick. The keys of exclusive grants are also locked in an IMap, where programs in
 * other languages lock them.
 */
export class HazelcastEngine extends StateEngine {
  readonly name: string
  readonly guarantees = hazelcastGuarantees
  // A sign of life would write the one entry that all boxes write. The entry shows the heartbeats of each request.
  override readonly coversBySigns = false
  readonly #link: Link
  readonly #table: Table
  readonly #values: Values
  readonly #sessions: Sessions
  readonly #transactions: Transactions
  readonly #own: OwnRequests
  readonly #memberLocks: MemberLocks
  readonly #grantLocks: GrantLocks
  readonly #place: HazelcastPlace
  readonly #watched = new Set<string>()
  /** The version of the newest change that was reported to watchers. */
  #reportedVersion = 0
  #reading: Timer | undefined
  #listener: Listener | undefined
  #isLeaving = false

  constructor(place: HazelcastPlace, hazelcast: Package, clock: Clock) {
    // Members have no clock that a change of the record could read.
    super(clock, clock, false)
    this.name = place.name
    this.#place = place
    const by = randomBytes(6).toString('hex')
    this.#link = new Link(place, by, hazelcast, clock, {
      changed: text => this.#table.onRecord(text),
      missed: () => this.#readAgain(),
    })
    const link = () => this.#link.get()
    const tableMap = async () => (await link()).table
    this.#values = new Values(link, hazelcast, clock)
    const tableLocks = new MapLocks(tableMap, hazelcast, clock)
    this.#table = new Table(by, tableMap, tableLocks, clock, change => this.#changed(change))
    this.#sessions = new Sessions(tableMap, clock)
    this.#transactions = new Transactions(
      place,
      this.#link,
      this.#table,
      this.#values,
      this.#sessions,
      clock,
      () => this.#readAgain(),
    )
    this.#own = new OwnRequests(clock, id => this.#listener?.contended(id))
    this.#memberLocks = new MemberLocks(
      new MapLocks(async () => (await link()).locks, hazelcast, clock),
      clock,
    )
    this.#grantLocks = new GrantLocks(
      place,
      this.#own,
      this.#memberLocks,
      async operation => super.submit(operation),
      id => this.receive({ type: 'wake', about: id }),
    )
  }

  override async join(session: SessionInfo, listener: Listener): Promise<void> {
    try {
      await this.#link.get()
      const { text, record } = await this.#table.read()
      this.#reportedVersion = text === undefined ? 0 : record.version
      for (const request of await this.#sessions.deadIn(record)) this.#table.sightings.markDead(request)
      this.#sessions.join(session)
      this.#own.join(session.session)
      this.#listener = listener
      this.#transactions.writeBack.follow(record)
      await super.join(session, listener)
    } catch (error) {
      await this.#close()
      throw failureOf(error, this.#place, UnavailableError)
    }
  }

  override submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  override submit(operation: Operation): Awaitable<OutcomeOf<Operation>> {
    if (this.#isLeaving) return super.submit(operation)
    switch (operation.type) {
      case 'watch':
        this.#watched.add(operation.key)
        return undefined
      case 'unwatch':
        this.#watched.delete(operation.key)
        return undefined
      case 'list':
        return this.#list(operation)
      default:
        return this.#grantLocks.execute(operation)
    }
  }

  async wallClock(): Promise<number> {
    try {
      return await this.#link.repeat(async () => memberTime((await this.#link.get()).table, this.clock))
    } catch (error) {
      throw failureOf(error, this.#place, UnavailableError)
    }
  }

  override async leave(): Promise<void> {
    if (this.#isLeaving || !this.#listener) return
    this.#isLeaving = true
    this.#reading?.cancel()
    this.#own.stop()
    const isLinked = this.#link.now !== undefined
    const left = Promise.all([
      super.leave(),
      this.#memberLocks.unlockAll(),
      this.#sessions.leave(),
      this.#transactions.writeBack.leave(),
    ])
    // What can't be released now ends with its lease.
    if (isLinked) await answered(left, this.clock).catch(() => undefined)
    await this.#close()
  }

  protected override transact<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    return this.#transactions.run(work, purpose)
  }

  protected override notify(): void {
    // Other boxes receive the record itself.
  }

  protected override receive(hint: Hint): void {
    if (hint.type === 'lost') void this.#memberLocks.unlock(hint.about)
    super.receive(hint)
  }

  async #list(list: List): Promise<readonly string[]> {
    try {
      // Read first: a change that is not in this record any more is in the entries by now.
      const { record } = await this.#link.repeat(() => this.#table.read())
      const keys = await this.#link.repeat(() => this.#values.list(list))
      return firstKeys([...keys, ...Object.keys(record.pending)], list)
    } catch (error) {
      throw failureOf(error, this.#place, UnavailableError)
    }
  }

  #changed({ record, isOwn, isNext }: TableChange): void {
    const { lost, woken } = this.#own.follow(record)
    if (!isOwn) {
      for (const id of lost) this.receive({ type: 'lost', about: id })
      for (const id of woken) this.receive({ type: 'wake', about: id })
    }
    this.#notifyWatchers(record)
    this.#transactions.writeBack.follow(record)
    // If a record was missed, its changes may have been written back by now, and be in no record.
    if (!isOwn && !isNext) this.#listener?.missed()
  }

  #notifyWatchers({ version, pending }: TableRecord): void {
    if (version <= this.#reportedVersion) return
    for (const [key, text] of Object.entries(pending))
      if (this.#watched.has(key) && stampOf(text) > this.#reportedVersion)
        this.receive({ type: 'changed', about: key })
    this.#reportedVersion = version
  }

  /**
   * Reads the record because changes may have been missed. Retries until it succeeds: no later event may report them.
   */
  #readAgain(): void {
    if (!this.#listener || this.#isLeaving) return
    this.#table.read().then(
      () => this.#listener!.missed(),
      () => {
        this.#reading?.cancel()
        this.#reading = this.clock.after(RETRY_PAUSE, () => this.#readAgain(), false)
      },
    )
  }

  async #close(): Promise<void> {
    this.#transactions.writeBack.close()
    await this.#link.close()
  }
}
