import { wallOf, type Clock } from '../../clock.js'
import type { Awaitable, Reservation } from '../../engine/contract.js'
import { BusyError, ClosedError, TimedOutError, UnavailableError, type ErrorContext } from '../../errors.js'
import { Waiters, type WaitersOwner } from '../../waiters.js'
import type { BoxTerms } from './box-limiter-options.js'
import { ClockOffset } from './clock-offset.js'
import { implies, leastDelay } from '../rules/definition.js'
import { LocalWaiters } from '../local/local-waiters.js'
import type { HoldMeter } from './hold-meter.js'
import { termsOf, whole, type AcquireOptions } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import { Permit, type PermitGiver } from '../permit.js'
import { aborted, lowered } from '../local/permit-queue.js'
import type { Reserve, Reserved, ReturnedPermits, Unit } from '../rules/reserve.js'
import { returned, ReservedPermits, type ReservedInstant } from './reserved-permits.js'
import type { Taken } from '../counter.js'
import { PermitCounter } from '../local/permit-counter.js'
import { pauseTime, Times } from '../local/times.js'
import { PermitWaiter } from '../local/permit-waiter.js'

/** What a decision tells its caller beside the outcome; undefined until the engine has answered. */
interface Told {
  explanation: Explanation | undefined
}

/** What a reservation client needs of its box. */
export interface ReservationSource {
  readonly clock: Clock
  /** For messages. */
  readonly engine: string
  /** The box's session id. */
  readonly session: string
  /** What all clients of the box have measured of the way to the engine. */
  readonly meter: HoldMeter
  /** Fails with the error that ended the box once the box is closed. */
  readonly ask: (request: Reserve) => Awaitable<Reservation>
}

/** The outcome for a caller that wanted a permit at once or not at all. */
export interface TryOutcome {
  readonly outcome: Permit | BusyError
  /** What the engine told together with the outcome; undefined when the engine could not be asked. */
  readonly explanation: Explanation | undefined
}

/** Decides about the permits of one limiter of a box, or of one of its keys. */
export interface BoxPermits {
  /** Why the engine could not be asked the last time; undefined when it could. */
  readonly outage: Error | undefined
  acquire(n?: number, options?: AcquireOptions): Promise<Permit>
  decide(): Promise<TryOutcome>
  explain(n?: number): Promise<Explanation>
  pauseUntil(time: Date | number): Promise<void>
  /**
   * Whether it can be forgotten: it has no waiter, and has owed nothing and been unused since then. @param since clock
   * time.
   */
  isIdle(since: number): boolean
  /**
   * Goes by other terms from now on. Reserved permits that do not keep the new limits are asked for anew. Waiters that
   * want more permits than the new limits allow are rejected.
   */
  change(terms: BoxTerms): void
  /** Admits no further caller. */
  shut(error: Error): void
  /** Rejects all waiters, once it is shut. */
  refuseAll(): void
  /** Resolves when no waiter is left and unused permits were given back, or could not be. */
  end(): Promise<void>
}

/** One call to the engine asks for at most so many waiters, */
const MOST_UNITS = 1000
/**
 * and for at most so many windows full of permits. A waiter behind them learns only later that its wait can't be met.
 */
const MOST_WINDOWS = 8
/** Waiters hear of a pause, and of permits that other processes gave back, within so many milliseconds. */
const LOOK = 250
/** A waiter for which nothing could be reserved asks again within so many milliseconds. */
const ASK_AGAIN = 2500
/** A shorter delay could be lost in rounding: milliseconds. */
export const SHORTEST_DELAY = 0.001
/** An engine that can't be asked is asked again after so many milliseconds. */
export const RETRY = 500
/** The options of a try. */
export const NOW: AcquireOptions = { wait: 0 }
/** Takes back permits that are not counted. */
export const NOBODY: PermitGiver = { released: () => undefined, unused: () => undefined }

/**
 * The callers of this process that want permits of one limiter of an engine. They share one queue, one timer, and one
 * call under way, which asks for all of them. Reserved permits are used in the order of the queue. Each may be used
 * only within the stretch of time that keeps the bound, wherever this process was stopped. A permit that comes too late
 * for it goes back, and a new one is asked for.
 */
export class ReservationClient implements BoxPermits, PermitGiver, WaitersOwner<PermitWaiter> {
  readonly #source: ReservationSource
  #terms: BoxTerms
  readonly #id: string
  readonly #context: { readonly key: string; readonly engine: string }
  readonly #waiters: Waiters<PermitWaiter>
  /** The callers that want a permit now or not at all: the tries. */
  readonly #tries = new Set<PermitWaiter>()
  /** What is told to those tries that want an explanation, too. */
  readonly #told = new Map<PermitWaiter, Told>()
  readonly #reserved = new ReservedPermits()
  readonly #offset = new ClockOffset()
  #returns: ReturnedPermits[] = []
  #scheduled = false
  #calling = false
  /** The answer to the newest call. */
  #answer: Awaitable<Reservation> | undefined
  #handing = false
  /**
   * Nothing more is asked for until then, clock time: the turns of the waiters come later than anything that can be
   * reserved.
   */
  #askAgainAt = -Infinity
  /** Nothing more is asked for before this instant either: the process holds its part. */
  #askAgainAfter: ReservedInstant | undefined
  /** The turn of the first of these waiters: clock time. */
  #nextTurn = -Infinity
  /**
   * Since when there are such waiters while nothing is reserved for this process, clock time; undefined when that is
   * not so.
   */
  #beyondSince: number | undefined
  /** How many processes wait for permits, as the engine last told. */
  #contenders = 1
  #lookedAt = -Infinity
  /** When to ask next for the waiters that have a reserved instant, whatever is asked before. */
  #lookAt = -Infinity
  outage: Error | undefined
  #retryAt = -Infinity
  /** Goes by the limits of this process alone while the engine is out of reach. */
  readonly #share: LocalWaiters | undefined
  readonly #again: BoxPermits['acquire']
  #closed: Error | undefined
  #usedAt: number
  readonly #ended: (() => void)[] = []
  readonly #next = (): void => this.#handOut()

  /**
   * @param id of the limiter in the engine.
   * @param key for messages.
   * @param again how a caller that went without the engine asks again when the engine is back.
   */
  constructor(
    source: ReservationSource,
    terms: BoxTerms,
    id: string,
    key: string,
    again: BoxPermits['acquire'] = (n, options) => this.acquire(n, options),
  ) {
    this.#source = source
    this.#again = again
    this.#terms = terms
    this.#id = id
    this.#context = { key, engine: source.engine }
    this.#usedAt = source.clock.now()
    this.#waiters = new Waiters(source.clock, this)
    const { share } = terms
    if (share) {
      const times = new Times(share.windows, source.clock, wallOf(source.clock))
      this.#share = new LocalWaiters(share, times, new PermitCounter(share, times), this.#context)
    }
  }

  acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    try {
      if (n !== 1) this.#check(n)
      const { wait, signal, priority } = termsOf(options)
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw aborted({ ...this.#context, cause: signal.reason })
      const { callers } = this.#waiters
      // A caller behind others whose wait has no end need not know the time before its turn.
      if (callers > 0 && wait === Infinity && callers < this.#terms.queue && !this.outage) {
        return this.#join(n, priority, signal, Infinity, false)
      }
      const now = (this.#usedAt = this.#source.clock.now())
      if (callers === 0) {
        const permit = this.#atHand(n, now)
        if (permit) return Promise.resolve(permit)
      }
      if (this.goesWithout) return this.#without(n, options, now)
      if (wait === 0 || callers >= this.#terms.queue) {
        if (this.#quietUntil > now && !this.outage) throw this.#busy(wait, callers)
        return this.#join(n, priority, signal, Infinity, true)
      }
      const deadline = now + wait
      if (
        this.#quietUntil > now &&
        this.#waiters.before(priority).callers === callers &&
        deadline < this.#nextTurn
      ) {
        throw this.#tooLate(wait, this.#nextTurn - now)
      }
      // Only the engine knows whether this caller's turn comes in time.
      this.#askAgainAfter = undefined
      return this.#join(n, priority, signal, deadline, false)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async decide(): Promise<TryOutcome> {
    if (this.#closed) throw this.#closed
    const now = (this.#usedAt = this.#source.clock.now())
    if (this.goesWithout) return { outcome: await tried(this.#without(1, NOW, now)), explanation: undefined }
    const told: Told = { explanation: undefined }
    const permit = new Promise<Permit>(settle => {
      const waiter = new PermitWaiter(1, 0, settle)
      this.#waiters.add(waiter)
      this.#tries.add(waiter)
      this.#told.set(waiter, told)
      this.#schedule()
    })
    const outcome = await tried(permit)
    return { outcome, explanation: told.explanation }
  }

  /** @param later how many permits are wanted by callers that have yet to join this queue. */
  async explain(n = 1, later = 0): Promise<Explanation> {
    this.#check(n)
    if (this.#closed) throw this.#closed
    const { place, ahead } = this.#before
    const { reserved } = await this.#ask({ explain: { n, ahead: ahead + later } })
    return explanationOf(reserved, place)
  }

  async pauseUntil(time: Date | number): Promise<void> {
    const now = wallOf(this.#source.clock)()
    const until = pauseTime(time, now)
    if (this.#closed) throw this.#closed
    this.#learn(await this.#ask({ pause: Math.max(until - now, 0) }))
  }

  isIdle(since: number): boolean {
    const owes = this.#calling || this.#scheduled || this.#returns.length > 0
    return !this.#waiters.first && !this.#reserved.first && !owes && this.#usedAt < since
  }

  change(terms: BoxTerms): void {
    const before = this.#terms
    const { share } = before
    this.#terms = terms
    for (const waiter of this.#waiters) {
      if (waiter.n > terms.most) this.#refuse(waiter, lowered(terms.most, waiter.n, this.#context))
    }
    if (share) {
      share.windows = terms.share!.windows
      this.#terms = { ...terms, share }
      this.#share!.limitsChanged()
    }
    // A permit that is asked for anew would come after what other processes have reserved.
    if (!keeps(before, terms)) this.#returns.push(...this.#reserved.dropWhere(() => true))
    this.#askAgainAt = -Infinity
    this.#askAgainAfter = undefined
    this.#schedule()
  }

  shut(error: Error): void {
    this.#closed ??= error
    this.#share?.shut()
  }

  refuseAll(): void {
    for (const waiter of this.#waiters) this.#refuse(waiter, this.#closed!)
    this.#share?.refuseAll()
  }

  async end(): Promise<void> {
    if (this.#waiters.first) await new Promise<void>(resolve => this.#ended.push(resolve))
    await this.#share?.end()
    try {
      // The answer may give permits back, or reserve permits that no waiter wants any more.
      await this.#answer
      this.#returns.push(...this.#reserved.dropWhere(() => true))
      const returns = this.#takeReturns()
      if (returns.length > 0) await this.#ask({ returns })
    } catch {
      // What can't be given back is counted as used.
    }
  }

  released(): void {
    // The number of permits in use is not limited.
  }

  unused({ n, at }: Taken): void {
    this.#returns.push({ n, at, from: at })
    this.#schedule()
  }

  /** Whether it gives permits now although the engine can't be asked. */
  get goesWithout(): boolean {
    return this.outage !== undefined && this.#share !== undefined
  }

  /** Asks for no permit, to learn whether the engine can be asked; never rejects. */
  look(): Promise<void> {
    return this.#turn(true)
  }

  /** Notes that the engine could not be asked for something else. */
  away(error: Error): void {
    this.outage = error
    this.#retryAt = this.#source.clock.now() + RETRY
  }

  /** The waiters before a new one, and how many permits have yet to be reserved for them. */
  get #before(): { readonly place: number; readonly ahead: number } {
    // A try is gone before any waiter's turn.
    let { callers: place, permits } = this.#waiters
    for (const { n } of this.#tries) {
      place--
      permits -= n
    }
    return { place, ahead: Math.max(permits - this.#reserved.permits, 0) }
  }

  /** A permit of a batch that can be used now. */
  #atHand(n: number, now: number): Permit | undefined {
    const share = this.#reserved.first
    if (!share || share.left < n || share.from > now || share.until < now) return undefined
    return new Permit(this, n, this.#reserved.take(n).at, 0, 0)
  }

  /** @param isTry whether the caller wants a permit now or not at all. */
  #join(
    n: number,
    priority: number,
    signal: AbortSignal | undefined,
    deadline: number,
    isTry: boolean,
  ): Promise<Permit> {
    return new Promise(settle => {
      const waiter = new PermitWaiter(n, 0, settle)
      this.#waiters.add(waiter, priority)
      if (isTry) this.#tries.add(waiter)
      this.#waiters.limit(waiter, deadline, signal)
      this.#schedule()
      this.#waiters.setTimer()
    })
  }

  /** Asks once for all that the present task brings. */
  #schedule(): void {
    // Callers that get their permits now may want the next ones together. `#handOut` comes here when it is done.
    if (this.#scheduled || this.#calling || this.#handing) return
    this.#scheduled = true
    void PASSED.then(() => {
      this.#scheduled = false
      if (!this.#handing) void this.#turn(false)
    })
  }

  /** Asks for what is wanted, if anything is. @param look whether to ask anyway. */
  async #turn(look: boolean): Promise<void> {
    if (this.#calling) return
    const now = this.#source.clock.now()
    // Without waiters, reserved permits go back at once.
    const isPointless = this.#quietUntil > now && (this.#waits || this.outage !== undefined)
    const [wishes, waiters] = isPointless ? NO_WISHES : this.#wishes(now)
    // The first call of a process reserves nothing: its answer tells how long a hold has to be. A permit reserved with
    // a shorter hold can't be used, and pushes the permits of other processes into the next window.
    const isFirst = wishes.length > 0 && !this.#source.meter.hasMeasured
    const units = isFirst ? NO_UNITS : wishes
    const deciders = isPointless && this.outage ? [] : [...this.#told.values()]
    const before = deciders.length > 0 ? this.#before : undefined
    const explain = before && { n: 1, ahead: units.length > 0 ? 0 : before.ahead }
    if (units.length === 0 && this.#returns.length === 0 && !explain && !look && !isFirst) {
      this.#lookLater(now)
      return
    }
    const returns = this.#takeReturns()
    const moves = this.#moves(now)
    // The explanations of before are out of date when this call is answered.
    for (const told of deciders) told.explanation = undefined
    this.#calling = true
    const terms = this.#terms
    const hold = this.#hold
    try {
      const answer = await (this.#answer = this.#ask({ units: moves.concat(units), returns, explain }))
      const times = this.#learn(answer)
      const explanation = before && explanationOf(answer.reserved, before.place)
      for (const told of deciders) told.explanation = explanation
      if (terms === this.#terms || keeps(terms, this.#terms))
        this.#settle(answer.reserved, hold, times, units, waiters)
      // Permits that were reserved under a limit that exceeds the present one are asked for anew.
      else this.#returns.push(...returnedOf(answer.reserved, hold))
    } catch (error) {
      // The permits that were to be given back count as used: they must not be given back twice.
      this.#failed(error as Error, waiters)
    } finally {
      this.#calling = false
      this.#goOn()
    }
  }

  /** The permits to give back, the latest first: only in that order does even spacing take back all of them. */
  #takeReturns(): readonly ReturnedPermits[] {
    const returns = this.#returns
    this.#returns = []
    return returns.sort((one, other) => other.at - one.at)
  }

  #ask({
    units = [],
    returns = [],
    pause = 0,
    explain,
  }: Partial<Pick<Reserve, 'units' | 'returns' | 'pause' | 'explain'>>): Awaitable<Reservation> {
    const { windows } = this.#terms
    const { session } = this.#source
    const horizon = this.#horizon
    const hold = this.#hold
    return this.#source.ask({
      limiter: this.#id,
      session,
      windows,
      units,
      horizon,
      hold,
      returns,
      pause,
      explain,
    })
  }

  /** Until when nothing more is asked for: clock time. */
  get #quietUntil(): number {
    const after = this.#askAgainAfter
    return after !== undefined && after === this.#reserved.first
      ? Math.max(after.from, this.#askAgainAt)
      : this.#askAgainAt
  }

  /** For how long each permit has to be usable: milliseconds. */
  get #hold(): number {
    const { hold, mostHold } = this.#terms
    return Math.max(hold, this.#source.meter.hold(mostHold))
  }

  /**
   * How far ahead to reserve: milliseconds. A process that has waited for longer reaches further ahead than others, so
   * it comes before them.
   */
  get #horizon(): number {
    const { horizon } = this.#terms
    if (this.#beyondSince === undefined) return horizon
    return horizon + Math.min(this.#source.clock.now() - this.#beyondSince, horizon)
  }

  /**
   * How many permits this process reserves ahead: an equal part of one window for each waiting process, rounded at
   * random, so that the parts of all make up one window. Permits that a process has reserved when it is stopped pass
   * unused: the engine can't give them to others, because the process may have used them just before. So the part is
   * what a stop costs the other processes, however many callers the process has and however long it is stopped. A
   * smaller part would not do: what no process has reserved goes to the process that asks first, which is the nearest
   * one again and again.
   *
   * A process reserves one permit in any case, which keeps its place behind the others. It also takes, beyond its part,
   * permits that can be used within the time of a call and its answer, because the other processes do not want them. So
   * a process with many callers has what those with few leave.
   */
  get #part(): number {
    return Math.floor(this.#terms.most / this.#contenders + Math.random())
  }

  /**
   * The wishes of the waiters for which nothing is reserved yet, and these waiters. Gives back the permits that no
   * waiter wants.
   */
  #wishes(now: number): readonly [readonly Unit[], readonly PermitWaiter[]] {
    if (this.#terms.batch > 1) return this.#wishesInBatches(now)
    const sizes = this.#reserved.sizes()
    const units: Unit[] = []
    const waiters: PermitWaiter[] = []
    const most = MOST_WINDOWS * this.#terms.most
    const part = this.#part
    const hold = this.#hold
    let ahead = this.#reserved.permits
    let permits = 0
    let last: Unit | undefined
    for (let waiter = this.#waiters.first; waiter; waiter = this.#waiters.after(waiter)) {
      const { n } = waiter
      const isTry = this.#isTry(waiter)
      // A permit that is reserved already may be for later.
      const left = sizes.size === 0 || isTry ? 0 : (sizes.get(n) ?? 0)
      if (left > 0) {
        sizes.set(n, left - 1)
        continue
      }
      permits += n
      if (units.length === MOST_UNITS || permits > most) return [units, waiters]
      if (!isTry) ahead += n
      const patience = isTry ? 0 : Math.max((waiter.patience?.deadline ?? Infinity) - now, 0)
      const within = Math.min(patience, ahead > Math.max(part, n) ? hold : Infinity)
      if (last?.n !== n || last.within !== within) last = { n, more: 0, within }
      units.push(last)
      waiters.push(waiter)
    }
    for (const [size, count] of sizes) {
      if (count > 0) this.#returns.push(...this.#reserved.dropLast(size, count))
    }
    return [units, waiters]
  }

  #wishesInBatches(now: number): readonly [readonly Unit[], readonly PermitWaiter[]] {
    const { batch, most } = this.#terms
    const waiters: PermitWaiter[] = []
    const held = this.#reserved.permits
    const part = this.#part
    const { first } = this.#reserved
    let left = held
    let laterLeft = first && first.from <= now ? left - first.left : left
    let wanted = 0
    let greatest = 1
    let onlyTries = true
    for (const waiter of this.#waiters) {
      const { n } = waiter
      const isTry = this.#isTry(waiter)
      if (left - (isTry ? laterLeft : 0) >= n) {
        left -= n
        laterLeft = Math.min(laterLeft, left)
        continue
      }
      if (wanted + n > MOST_WINDOWS * most) break
      wanted += n
      greatest = Math.max(greatest, n)
      if (!isTry) onlyTries = false
      waiters.push(waiter)
    }
    const size = Math.max(batch, greatest)
    // Each unit has room for any of the waiters.
    const unit = { n: greatest, more: size - greatest, within: onlyTries ? 0 : Infinity }
    const beyondPart = { ...unit, within: onlyTries ? 0 : this.#hold }
    const count = Math.min(Math.ceil(wanted / size), MOST_UNITS)
    const unitAt = (_: unknown, index: number): Unit =>
      held + (index + 1) * size > Math.max(part, size) ? beyondPart : unit
    return [Array.from({ length: count }, unitAt), waiters]
  }

  /**
   * Units for waiters that have a reserved instant: other processes may have given back earlier ones. For each earlier
   * instant that comes, the latest of this process goes back. Asked for now and then, because the engine does not
   * notify.
   */
  #moves(now: number): readonly Unit[] {
    const { last } = this.#reserved
    const { batch } = this.#terms
    const hold = this.#hold
    if (now < this.#lookAt) return NO_UNITS
    this.#lookAt = now + LOOK
    if (batch > 1 || !last || !this.#waiters.first) return NO_UNITS
    const sizes = this.#reserved.sizes()
    const units: Unit[] = []
    for (const [n, { earliest }] of this.#reserved.lastOfSizes()) {
      // An answer may take longer than such a unit would gain.
      const within = earliest - hold - now
      const count = Math.min(sizes.get(n)!, MOST_UNITS - units.length)
      const unit = { n, more: 0, within }
      if (within > 0) units.push(...Array.from({ length: count }, () => unit))
    }
    return units
  }

  #isTry(waiter: PermitWaiter): boolean {
    return this.#tries.size > 0 && this.#tries.has(waiter)
  }

  /** Notes what every answer tells of the limiter as a whole. Returns the clock times between which it was decided. */
  #learn({
    reserved: { now, pausedUntil, fadesAt, contenders },
    ...asked
  }: Reservation): readonly [number, number] {
    this.#lookedAt = this.#source.clock.now()
    if (this.outage && !this.#closed) this.#share?.refuseAll(BACK)
    this.outage = undefined
    if (contenders > 0) this.#contenders = contenders
    const [earliest, latest] = this.#offset.learn(now, asked.earliest, asked.latest)
    this.#source.meter.note(this.#lookedAt - earliest, this.#lookedAt)
    if (pausedUntil > now) {
      const until = latest + (pausedUntil - now)
      this.#returns.push(...this.#reserved.dropWhere(({ from }) => from < until))
    }
    // Permits for later can be had sooner once these limits are forgotten. All processes give them back before, so no
    // process that asks anew comes after another's.
    if (fadesAt < Infinity)
      this.#returns.push(...this.#reserved.dropWhere(({ opensAt }) => opensAt > fadesAt))
    return [earliest, latest]
  }

  #settle(
    reserved: Reserved,
    asked: number,
    [earliest, latest]: readonly [number, number],
    units: readonly Unit[],
    waiters: readonly PermitWaiter[],
  ): void {
    const { now, hold } = reserved
    const lead = leadOf(reserved, asked)
    const clockNow = this.#lookedAt
    // The first units are of waiters that have a permit already.
    const moves = reserved.units.length - units.length
    // How many permits earlier waiters go on waiting for, by size: waiters of one size are served in order.
    const behind = new Map<number, number>()
    for (const [index, { n, at }] of reserved.units.entries()) {
      if (n === 0) {
        if (index < moves) continue
        const fades = at === reserved.fadesAt
        if (this.#terms.batch > 1) {
          this.#refusedBatch(waiters, at - now, earliest, fades)
          continue
        }
        const waiter = waiters[index - moves]!
        const others = behind.get(waiter.n) ?? 0
        this.#refused(waiter, at - now, others, earliest, fades)
        if (waiter.isQueued && !this.#isTry(waiter)) behind.set(waiter.n, others + waiter.n)
        continue
      }
      // A unit that can be used at once may have an instant that was rounded up.
      const opensAt = units[index - moves]?.within === 0 ? Math.min(at - lead, now) : at - lead
      const share = {
        left: n,
        at,
        opensAt,
        earliest: earliest + (opensAt - now),
        from: latest + (opensAt - now),
        until: earliest + (at - now) + hold,
      }
      // An answer that took too long leaves no time to use it: the next hold is longer.
      if (share.from > share.until || share.until < clockNow) this.#returns.push(returned(share))
      else this.#reserved.add(share)
    }
    if (this.#reserved.first) this.#beyondSince = undefined
    // There is no permit either for tries that came meanwhile.
    const quiet = this.#quietUntil - clockNow
    if (quiet > 0) {
      for (const waiter of [...this.#tries]) {
        if (!waiters.includes(waiter)) this.#refuseTry(waiter, quiet)
      }
    }
  }

  /** Nothing more could be reserved for these waiters: the permits that are open go to the first of them. */
  #refusedBatch(waiters: readonly PermitWaiter[], ahead: number, asked: number, fades: boolean): void {
    let open = this.#reserved.openPermits(this.#lookedAt)
    for (const waiter of waiters) {
      if (waiter.n <= open) open -= waiter.n
      else this.#refused(waiter, ahead, undefined, asked, fades)
    }
  }

  /**
   * Nothing could be reserved for this waiter. @param ahead milliseconds until the first such turn.
   * @param others how many permits come before its own; undefined where another unit may have room for it.
   */
  #refused(
    waiter: PermitWaiter,
    ahead: number,
    others: number | undefined,
    asked: number,
    fades: boolean,
  ): void {
    if (!waiter.isQueued) return
    if (this.#isTry(waiter)) return this.#refuseTry(waiter, ahead)
    const deadline = waiter.patience?.deadline ?? Infinity
    if (others !== undefined && deadline < Infinity) {
      const turn = ahead + leastDelay(this.#terms.windows, others)
      if (asked + turn > deadline) return this.#refuse(waiter, this.#tooLate(deadline - asked, turn))
    }
    this.#askLater(ahead, asked, fades)
  }

  /**
   * The next waiter asks when the reserved permits are used, or when its turn comes nearer.
   * @param ahead milliseconds until its turn.
   * @param fades whether stricter limits are forgotten then.
   */
  #askLater(ahead: number, asked: number, fades: boolean): void {
    if (this.#quietUntil > this.#lookedAt) return
    this.#nextTurn = asked + ahead
    const { first } = this.#reserved
    if (fades || !first) {
      if (!first) this.#beyondSince ??= this.#lookedAt
      // While the turn comes nearer, the horizon goes further. The random factor keeps one process from always asking
      // just before another.
      const nearer = Math.min((ahead - this.#horizon) / 2, ASK_AGAIN) * (0.75 + Math.random() / 4)
      this.#askAgainAt =
        this.#lookedAt + Math.max(fades ? Math.min(ahead, ASK_AGAIN) : nearer, this.#terms.hold)
    } else this.#askAgainAfter = first
  }

  /** Whether the waiter gets nothing before an answer that brings its explanation. */
  #isUntold(waiter: PermitWaiter): boolean {
    const told = this.#told.size > 0 ? this.#told.get(waiter) : undefined
    return told !== undefined && told.explanation === undefined
  }

  /** @param readyIn milliseconds until there may be a permit for it. */
  #refuseTry(waiter: PermitWaiter, readyIn: number): void {
    // The try came after the call that has just been answered.
    if (this.#isUntold(waiter)) return
    const told = this.#told.get(waiter)
    if (told) told.explanation = notBefore(told.explanation!, readyIn)
    this.#refuse(waiter, this.#busy(0, 0))
  }

  /** The engine could not be asked for these waiters. */
  #failed(error: Error, waiters: readonly PermitWaiter[]): void {
    const now = this.#source.clock.now()
    this.#lookedAt = now
    if (error instanceof ClosedError) {
      this.shut(error)
      return this.refuseAll()
    }
    this.away(error)
    switch (this.#terms.onUnavailable) {
      case 'error':
        for (const waiter of waiters) if (waiter.isQueued) this.#refuse(waiter, error)
        return
      case 'closed':
        this.#askAgainAt = this.#retryAt
        for (const waiter of [...this.#tries]) this.#refuse(waiter, error)
        return
      default:
        for (const waiter of this.#waiters) {
          const { n } = waiter
          const { priority } = waiter.rank!
          const { signal, deadline = Infinity } = waiter.patience ?? {}
          const wait = this.#tries.has(waiter) ? 0 : Math.max(deadline - now, 0)
          this.#leave(waiter)
          waiter.settle(this.#without(n, { wait, signal, priority }, now))
        }
    }
  }

  /** A permit that the engine does not count. */
  async #without(n: number, options: AcquireOptions | undefined, now: number): Promise<Permit> {
    if (now >= this.#retryAt) {
      this.#retryAt = now + RETRY
      void this.#turn(true)
    }
    try {
      return await this.#share!.acquire(n, options)
    } catch (error) {
      if (error !== BACK) throw error
      const { wait, ...others } = termsOf(options)
      const rest = Math.max(now + wait - this.#source.clock.now(), SHORTEST_DELAY)
      return this.#again(n, { ...others, wait: rest })
    }
  }

  #goOn(): void {
    if (this.#handing) return
    this.#handing = true
    // This runs once for each permit: the runtime's own queueMicrotask costs several times as much.
    void PASSED.then(this.#next)
  }

  /**
   * Gives the first waiter its permit if it is time, and the next waiter in a later microtask: after the first caller
   * has gone on, which may take a while.
   */
  #handOut(): void {
    this.#handing = false
    const now = (this.#usedAt = this.#source.clock.now())
    while (this.#waiters.earliestDeadline < now) this.#refuseLate()
    for (let share = this.#reserved.first; share && share.until < now; share = this.#reserved.first) {
      if (this.#waiters.first) this.#noteUse(share, now)
      this.#reserved.dropFirst()
      this.#returns.push(returned(share))
    }
    if (this.#giveOne(now)) return this.#goOn()
    // Waiters whose deadline is now have had a last chance.
    while (this.#waiters.earliestDeadline <= now) this.#refuseLate()
    this.#schedule()
    this.#lookLater()
  }

  /** Uses the first reserved instant if it is time for it; returns false when it is not. */
  #giveOne(now: number): boolean {
    const share = this.#reserved.first
    if (!share || share.from > now) return false
    const waiter = this.#waiterFor(share.left)
    if (waiter) {
      this.#noteUse(share, now)
      this.#reserved.take(waiter.n)
      this.#leave(waiter)
      waiter.settle(new Permit(this, waiter.n, share.at, 0, 0))
      return true
    }
    // A later caller may still want the rest of the batch.
    if (this.#terms.batch > 1 && !this.#waits) return false
    this.#reserved.dropFirst()
    this.#returns.push(returned(share))
    return true
  }

  /**
   * Some permits of a batch are used as soon as they can be, and others when a caller comes, so their times tell
   * nothing.
   */
  #noteUse({ earliest }: ReservedInstant, now: number): void {
    if (this.#terms.batch === 1) this.#source.meter.note(now - earliest, now)
  }

  /** The first waiter that can have the reserved permits: all of them, unless they are a batch. */
  #waiterFor(permits: number): PermitWaiter | undefined {
    const isBatch = this.#terms.batch > 1
    for (let waiter = this.#waiters.first; waiter; waiter = this.#waiters.after(waiter)) {
      const fits = waiter.n === permits || (isBatch && waiter.n < permits)
      if (fits && !this.#isUntold(waiter)) return waiter
    }
    return undefined
  }

  /**
   * Sets when to look again. @param now when it was decided that nothing is to be asked for: an event that has fallen due
   * since then would have no timer otherwise.
   */
  #lookLater(now = this.#source.clock.now()): void {
    const share = this.#reserved.first
    const { first } = this.#waiters
    let at = Infinity
    if (share) {
      at = first && !this.#isUntold(first) ? share.from : share.until
      const look = this.#lookAt
      if (first && this.#reserved.last!.from > look && !this.#calling) at = Math.min(at, look)
    }
    if (first && this.#askAgainAt > now) at = Math.min(at, this.#askAgainAt)
    this.#waiters.lookAt(at, now)
  }

  timeOver(): void {
    const now = this.#source.clock.now()
    const share = this.#reserved.last
    const waitsLong = this.#waiters.first !== undefined && share !== undefined && share.from > now
    if (waitsLong && now >= this.#lookAt) void this.#turn(true)
    if (!this.#handing) this.#handOut()
  }

  aborted(waiter: PermitWaiter, { reason: cause }: AbortSignal): void {
    this.#refuse(waiter, aborted({ ...this.#context, cause }))
  }

  #refuseLate(): void {
    const error = this.outage
      ? stillAway(this.outage, this.#context)
      : new TimedOutError('no permit within the wait', this.#context)
    this.#refuse(this.#waiters.mostUrgent!, error)
  }

  #refuse(waiter: PermitWaiter, error: Error): void {
    this.#leave(waiter)
    waiter.reject(error)
    // The permits that were reserved for it go to the next waiter. Without one they go back.
    this.#schedule()
  }

  /** Whether any waiter waits for a turn that is yet to come. */
  get #waits(): boolean {
    return this.#waiters.callers > this.#tries.size
  }

  #leave(waiter: PermitWaiter): void {
    this.#waiters.remove(waiter)
    if (this.#tries.size > 0) this.#tries.delete(waiter)
    if (this.#told.size > 0) this.#told.delete(waiter)
    // The delay that the waiters who left would have kept need not hold for others.
    if (!this.#waits && !this.outage) {
      this.#askAgainAt = -Infinity
      this.#askAgainAfter = undefined
    }
    if (this.#waiters.first) return
    for (const tell of this.#ended.splice(0)) tell()
  }

  #check(n: number): void {
    whole('n', n, 1, this.#terms.most)
  }

  #busy(wait: number, callers: number): BusyError {
    const why = wait === 0 ? 'there is no permit now' : `${callers} callers wait already`
    return new BusyError(why, this.#context)
  }

  #tooLate(wait: number, ahead: number): TimedOutError {
    const turn = `its turn would be in ${Math.ceil(ahead)} ms at the earliest`
    return new TimedOutError(`no permit within ${Math.ceil(wait)} ms: ${turn}`, this.#context)
  }
}

/** Tells the waiters for a permit of this process alone that they are to wait for one of the engine. */
const BACK = new Error('the engine is there again')

/** The wait is over, and the engine could not be asked. */
export function stillAway(cause: Error, context: ErrorContext): UnavailableError {
  const why = `no permit within the wait, because the engine can't be asked`
  return new UnavailableError(why, { ...context, cause })
}

/** The outcome of a try: a BusyError is no failure. */
export async function tried(permit: Permit | Promise<Permit>): Promise<Permit | BusyError> {
  try {
    return await permit
  } catch (error) {
    if (error instanceof BusyError) return error
    throw error
  }
}

/** The explanation that an answer gives. @param place how many callers are before the one that asks. */
function explanationOf({ now, pausedUntil, explained }: Reserved, place: number): Explanation {
  const { ready, binding, reports } = explained!
  const readyIn = ready - now
  return {
    waitsFor: pausedUntil > now ? 'pause' : readyIn > 0 ? 'limit' : 'nothing',
    binding: binding === undefined ? undefined : reports[binding],
    place,
    readyIn,
    running: 0,
    limits: reports,
  }
}

/** The same explanation where nothing is there sooner. @param readyIn milliseconds. */
function notBefore(explanation: Explanation, readyIn: number): Explanation {
  if (explanation.readyIn >= readyIn) return explanation
  const { waitsFor } = explanation
  return { ...explanation, waitsFor: waitsFor === 'nothing' ? 'limit' : waitsFor, readyIn }
}

/** Whether permits that are reserved under some terms keep others, too. */
function keeps(one: BoxTerms, other: BoxTerms): boolean {
  return other.windows.every(window => one.windows.some(its => implies(its, window)))
}

/** How long before their instants permits can be used that were asked for with a hold: milliseconds. */
function leadOf({ hold }: Reserved, asked: number): number {
  return Math.max(asked - hold, 0)
}

/** The permits of an answer, to be given back unused. */
function returnedOf(reserved: Reserved, asked: number): ReturnedPermits[] {
  const taken = reserved.units.filter(({ n }) => n > 0)
  return taken.map(({ n, at }) => ({ n, at, from: at - leadOf(reserved, asked) }))
}

const PASSED = Promise.resolve()
const NO_UNITS: readonly Unit[] = []
const NO_WISHES: readonly [readonly Unit[], readonly PermitWaiter[]] = [NO_UNITS, []]
