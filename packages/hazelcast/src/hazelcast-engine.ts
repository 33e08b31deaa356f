import { IndeterminateError, UnavailableError } from 'signalbox'
import {
  LateRequests,
  Withdrawals,
  boxClosed,
  type AnyEffect,
  type Awaitable,
  type Clock,
  type Engine,
  type Listener,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type SessionInfo,
  type Timer,
} from 'signalbox/engine'
import { answered, RETRY_PAUSE } from './call.js'
import { MapEntries, TextEntries } from './entry-store.js'
import { EntryWatch } from './entry-watch.js'
import { failureOf } from './failures.js'
import { GrantLocks } from './grant-locks.js'
import { hazelcastGuarantees } from './guarantees.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { Hints, mailboxOf, messagesIn, type Message } from './hints.js'
import { KeyOperations } from './key-operations.js'
import { checkLayout } from './layout.js'
import { Link, type Package } from './link.js'
import { MapLocks } from './map-locks.js'
import { MemberLocks, YIELD_AFTER } from './member-locks.js'
import { memberTime } from './member-time.js'
import { OwnRequests } from './own-requests.js'
import { Scan } from './scan.js'
import { Sessions } from './sessions.js'
import { Uncontended } from './uncontended.js'

/**
 * Keeps locks and values on Hazelcast, which offers only compare-and-set of one entry. So the entry of each key has its
 * value and its locks, and one compare-and-set decides the operations of a tick on it. The keys of exclusive grants are
 * also locked in an IMap, where programs in other languages lock them.
 */
export class HazelcastEngine implements Engine {
  readonly name: string
  readonly guarantees = hazelcastGuarantees
  readonly reportsContention = false
  readonly coversBySigns = true
  readonly checksOnlyLocked = true
  readonly #clock: Clock
  readonly #place: HazelcastPlace
  readonly #link: Link
  readonly #sessions: Sessions
  readonly #hints: Hints
  readonly #own = new OwnRequests()
  readonly #operations: KeyOperations
  readonly #uncontended: Uncontended
  readonly #memberLocks: MemberLocks
  readonly #grantLocks: GrantLocks
  readonly #watch: EntryWatch
  readonly #withdrawals = new Withdrawals()
  readonly #late: LateRequests
  #mailbox = ''
  #session = ''
  #listener: Listener | undefined
  #reading: Timer | undefined
  readonly #underway = new Set<Promise<unknown>>()

  constructor(place: HazelcastPlace, hazelcast: Package, clock: Clock) {
    this.name = place.name
    this.#place = place
    this.#clock = clock
    this.#link = new Link(place, () => this.#mailbox, hazelcast, clock, {
      hinted: text => this.#hinted(text),
      missed: () => this.#readAgain(),
    })
    const link = () => this.#link.get()
    const tableMap = async () => (await link()).table
    const valuesMap = async () => (await link()).values
    const locksOf = (map: ConstructorParameters<typeof MapLocks>[0]): MapLocks =>
      new MapLocks(map, hazelcast, clock, () => this.#link.failures)
    this.#sessions = new Sessions(tableMap, clock)
    this.#hints = new Hints(tableMap, clock)
    this.#memberLocks = new MemberLocks(
      locksOf(async () => (await link()).locks),
      clock,
    )
    const entries = new TextEntries(tableMap, clock)
    this.#operations = new KeyOperations({
      place,
      by: () => this.#session,
      clock,
      keys: {
        store: new MapEntries(valuesMap, hazelcast, clock),
        locks: locksOf(valuesMap),
      },
      room: { store: entries, locks: locksOf(tableMap) },
      signs: entries,
      scan: new Scan(valuesMap, hazelcast, clock),
      repeat: (work, until) => this.#link.repeat(work, until),
      sessions: this.#sessions,
      notify: (effects, text) => this.#notify(effects, text),
      waitsFor: (session, message) => this.#hints.send(session, message),
      members: {
        standing: operation => this.#grantLocks.standing(operation),
        granting: (request, lease) => this.#grantLocks.granting(request, lease),
        blocked: id => this.#grantLocks.blocked(id),
        releasing: id => this.#grantLocks.releasing(id),
      },
      unclear: () => this.#readAgain(),
      isWithdrawn: request => this.#withdrawals.reached(request),
    })
    this.#uncontended = new Uncontended(clock, id => this.#listener?.contended(id))
    this.#grantLocks = new GrantLocks(
      place,
      this.#own,
      keys => this.#operations.areLikelyFree(keys),
      id => this.#operations.left(id),
      request => this.#operations.isUncontended(request) && this.#uncontended.begin(request.id, YIELD_AFTER),
      this.#memberLocks,
      operation => this.#decide(operation),
      id => this.#listener?.wake(id),
    )
    this.#watch = new EntryWatch(valuesMap, clock, key => this.#listener?.changed(key))
    this.#late = new LateRequests({
      clock,
      isOwn: id => this.#own.get(id) !== undefined,
      cancel: async request => this.submit({ type: 'cancel', request }),
    })
  }

  async join(session: SessionInfo, listener: Listener): Promise<void> {
    this.#session = session.session
    this.#mailbox = mailboxOf(session.session)
    try {
      await this.#link.repeat(async () =>
        checkLayout((await this.#link.get()).table, this.#place, this.#clock),
      )
      this.#sessions.join(session)
      this.#listener = listener
    } catch (error) {
      await this.#link.close()
      throw failureOf(error, this.#place, UnavailableError)
    }
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Awaitable<OutcomeOf<Operation>> {
    if (!this.#listener) return Promise.reject(boxClosed(this.name))
    const outcome = this.#submit(operation)
    this.#underway.add(outcome)
    const over = (): void => void this.#underway.delete(outcome)
    outcome.then(over, over)
    return outcome
  }

  withdraw(request: LockRequest): boolean {
    return this.#withdrawals.withdraw(request)
  }

  async wallClock(): Promise<number> {
    try {
      return await this.#link.repeat(async () => memberTime((await this.#link.get()).table, this.#clock))
    } catch (error) {
      throw failureOf(error, this.#place, UnavailableError)
    }
  }

  async leave(): Promise<void> {
    if (!this.#listener) return
    this.#listener = undefined
    this.#reading?.cancel()
    this.#late.end()
    this.#uncontended.stop()
    this.#operations.end()
    const isLinked = this.#link.now !== undefined
    // A grant that can't be released now expires with its lease.
    if (isLinked) await answered(this.#releaseAll(), this.#clock).catch(() => undefined)
    await this.#link.close()
  }

  async #releaseAll(): Promise<void> {
    await Promise.allSettled(this.#underway)
    await Promise.allSettled(
      this.#own.all().map(request => this.#operations.execute({ type: 'cancel', request })),
    )
    await Promise.all([this.#memberLocks.unlockAll(), this.#sessions.leave(), this.#operations.leave()])
    await this.#hints.settled()
  }

  async #submit(operation: Operation): Promise<OutcomeOf<Operation>> {
    switch (operation.type) {
      case 'watch':
        try {
          await this.#link.repeat(() => this.#watch.watch(operation.key))
        } catch (error) {
          throw failureOf(error, this.#place, UnavailableError)
        }
        return undefined
      case 'unwatch':
        this.#watch.unwatch(operation.key)
        return undefined
      default:
        return this.#grantLocks.execute(operation)
    }
  }

  async #decide<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    const asked: Operation = operation
    const enqueued = asked.type === 'enqueue' ? asked.request : undefined
    this.#own.sent(asked)
    if (enqueued) this.#withdrawals.sent(enqueued)
    if (asked.type === 'cancel' || asked.type === 'release') this.#late.givenUp(asked.request)
    try {
      const outcome = await this.#operations.execute(operation)
      this.#own.done(asked, outcome)
      // This process may end at once, so first make sure that the holders are notified.
      if (asked.type === 'forceRelease' || asked.type === 'revoke') await this.#hints.settled()
      return outcome
    } catch (error) {
      if (enqueued) this.#own.failed(enqueued.id)
      const maySend = asked.type === 'enqueue' || asked.type === 'extendOrYield'
      if (maySend && error instanceof IndeterminateError) this.#late.lost(asked)
      throw error
    } finally {
      if (enqueued) this.#withdrawals.answered(enqueued)
    }
  }

  #notify(effects: readonly AnyEffect[], text: string | undefined): void {
    for (const effect of effects) {
      if (effect.type === 'changed') continue
      const { type, session, id, key } = effect
      if (session === this.#session) this.#receive({ type, id, key })
      else {
        this.#hints.send(session, { type, id, key, text })
        // If the hint is lost, this box passes over the request.
        if (type === 'wake') this.#listener?.reserved(key)
      }
    }
  }

  #hinted(text: string): void {
    for (const message of messagesIn(text)) {
      this.#operations.changed(message.key, message.text)
      this.#receive(message)
    }
  }

  #receive({ type, id }: Message): void {
    const request = this.#own.get(id)
    if (!request) return
    if (type === 'look') return this.#uncontended.end(id)
    if (type === 'lost') {
      this.#operations.doubted(id)
      this.#listener?.lost(id)
      return void this.#checkLost(request)
    }
    this.#operations.woken(request).then(
      mayBeGranted => {
        if (!mayBeGranted) return
        this.#own.woken(id)
        this.#listener?.wake(id)
      },
      () => this.#listener?.wake(id),
    )
  }

  /** Frees the members' locks of a request, if it was lost. Checks that first, because any client can send the hint. */
  async #checkLost(request: LockRequest): Promise<void> {
    const left = await this.#operations.present([request]).catch(() => undefined)
    if (left?.size === 0) await this.#memberLocks.unlock(request.id)
  }

  /** Finds out which hints have been missed. Retries until it succeeds: no later event may report them. */
  #readAgain(): void {
    if (!this.#listener) return
    this.#reading?.cancel()
    this.#reading = undefined
    this.#missed().then(
      () => this.#listener?.missed(),
      () => {
        this.#reading?.cancel()
        this.#reading = this.#clock.after(RETRY_PAUSE, () => this.#readAgain(), false)
      },
    )
  }

  async #missed(): Promise<void> {
    this.#operations.forgetAll()
    const requests = this.#own.all()
    const left = await this.#operations.present(requests)
    if (requests.length > 0 && left.size === 0) this.#sessions.entriesLost()
    for (const { id } of requests) {
      if (left.has(id)) this.#listener?.wake(id)
      else this.#listener?.lost(id)
    }
    await checkLayout((await this.#link.get()).table, this.#place, this.#clock)
    await this.#watch.again()
  }
}
