import { wallOf } from '../../clock.js'
import type { Awaitable, Reservation } from '../../engine/contract.js'
import { ClosedError, TimedOutError } from '../../errors.js'
import type { Waiters } from '../../waiters.js'
import { Callers, type CallersOwner } from '../callers.js'
import type { Taken } from '../counter.js'
import { termsOf, whole, type AcquireOptions } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import { PermitWaiter } from '../local/permit-waiter.js'
import { pauseTime } from '../local/times.js'
import { Permit, type PermitGiver } from '../permit.js'
import { aborted, busy } from '../refusals.js'
import { implies, leastDelay } from '../rules/definition.js'
import type { Reserved, Unit } from '../rules/reserve.js'
import { AskPace } from './ask-pace.js'
import type { BoxTerms } from './box-limiter-options.js'
import { NOW, tried, type BoxPermits, type TryOutcome } from './box-permits.js'
import { explanationOf, notBefore } from './explanations.js'
import { Outage } from './outage.js'
import { ReservationCalls, type Decided, type ReservationSource, type Wanted } from './reservation-calls.js'
import {
  allReturned,
  returned,
  ReservedPermits,
  stretchOf,
  type ReservedInstant,
} from './reserved-permits.js'
import { isUntold, TryWaiter } from './try-waiter.js'
import { earlierUnits, NOTHING, wantedUnits, type Situation } from './wanted-units.js'

/**
 * The callers of this process that want permits of one limiter of an engine. They share one queue, one timer, and one
 * call under way, which asks for all of them. Reserved permits are used in the order of the queue. Each may be used
 * only within the stretch of time that keeps the bound, wherever this process was stopped. A permit that comes too late
 * for it goes back, and a new one is asked for.
 *
 * A caller enters the queue (`#enter`). When the present task is over, one call asks for all that is wanted (`#ask`).
 * Its answer is settled: permits are kept, and waiters for which there is none are refused or ask again later
 * (`#settle`). Each permit is handed out when it opens (`#handOut`).
 */
export class ReservationClient implements BoxPermits, PermitGiver, CallersOwner<Permit> {
  readonly #source: ReservationSource
  #terms: BoxTerms
  readonly #context: { readonly key: string; readonly engine: string }
  readonly #callers: Callers<Permit>
  readonly #waiters: Waiters<PermitWaiter>
  readonly #tries = new Set<TryWaiter>()
  readonly #reserved = new ReservedPermits()
  readonly #calls: ReservationCalls
  readonly #pace = new AskPace(this.#reserved)
  readonly #outage: Outage
  /** Whether a call is about to be made in a microtask. */
  #scheduled = false
  #calling = false
  /** The answer to the newest call for waiters. */
  #answer: Awaitable<Reservation> | undefined
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #closed: Error | undefined
  #usedAt: number
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
    this.#terms = terms
    this.#context = { key, engine: source.engine }
    this.#usedAt = source.clock.now()
    this.#callers = new Callers(source.clock, this, this.#context)
    this.#waiters = this.#callers.queue
    this.#calls = new ReservationCalls(source, id)
    this.#outage = new Outage(source.clock, terms.share, this.#context, again)
  }

  acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    try {
      if (n !== 1) this.#check(n)
      const { wait, signal, priority } = termsOf(options)
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw aborted(signal, this.#context)
      const { callers } = this.#waiters
      // A caller behind others whose wait has no end need not know the time before its turn.
      if (callers > 0 && wait === Infinity && callers < this.#terms.queue && !this.outage) {
        return this.#wait(n, priority, signal, Infinity)
      }
      const now = (this.#usedAt = this.#source.clock.now())
      if (callers === 0) {
        const permit = this.#atHand(n, now)
        if (permit) return Promise.resolve(permit)
      }
      if (this.goesWithout) return this.#without(n, options, now)
      const { quietUntil, nextTurn } = this.#pace
      if (wait === 0 || callers >= this.#terms.queue) {
        if (quietUntil > now && !this.outage) throw busy(wait, callers, this.#context)
        return this.#try(n, priority, signal)
      }
      const deadline = now + wait
      if (quietUntil > now && this.#waiters.before(priority).callers === callers && deadline < nextTurn) {
        throw this.#tooLate(wait, nextTurn - now)
      }
      this.#pace.askBeyondPart()
      return this.#wait(n, priority, signal, deadline)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async decide(): Promise<TryOutcome> {
    if (this.#closed) throw this.#closed
    const now = (this.#usedAt = this.#source.clock.now())
    if (this.goesWithout) return { outcome: await tried(this.#without(1, NOW, now)), explanation: undefined }
    return new Promise(resolve => {
      const settle = (permit: Permit | Promise<Permit>): void => {
        const { explanation } = waiter
        resolve(tried(permit).then(outcome => ({ outcome, explanation })))
      }
      const waiter = new TryWaiter(1, settle, true)
      this.#tries.add(waiter)
      this.#enter(waiter, 0, undefined, Infinity)
    })
  }

  /** @param later how many permits are wanted by callers that have yet to join this queue. */
  async explain(n = 1, later = 0): Promise<Explanation> {
    this.#check(n)
    if (this.#closed) throw this.#closed
    const { place, ahead } = this.#before
    const { reserved } = await this.#call({ explain: { n, ahead: ahead + later } })
    return explanationOf(reserved, place)
  }

  async pauseUntil(time: Date | number): Promise<void> {
    const now = wallOf(this.#source.clock)()
    const until = pauseTime(time, now)
    if (this.#closed) throw this.#closed
    this.#learn(await this.#call({ pause: Math.max(until - now, 0) }))
  }

  isIdle(since: number): boolean {
    const owes = this.#calling || this.#scheduled || this.#reserved.owes
    return !this.#waiters.first && !this.#reserved.first && !owes && this.#usedAt < since
  }

  change(terms: BoxTerms): void {
    const before = this.#terms
    this.#terms = terms
    this.#callers.refuseAbove(terms.most)
    this.#outage.change(terms.share)
    // A permit that is asked for anew would come after what other processes have reserved.
    if (!keeps(before, terms)) this.#reserved.giveBackWhere(() => true)
    this.#pace.askNow()
    this.#schedule()
  }

  shut(error: Error): void {
    this.#closed ??= error
    this.#outage.shut()
  }

  refuseAll(): void {
    this.#callers.refuseAll(this.#closed!)
    this.#outage.refuseAll()
  }

  async end(): Promise<void> {
    await this.#callers.end()
    await this.#outage.end()
    this.#waiters.lookAt(Infinity, 0)
    try {
      // The answer may give permits back, or reserve permits that no waiter wants any more.
      await this.#answer
      this.#reserved.giveBackWhere(() => true)
      const returns = this.#reserved.takeReturns()
      if (returns.length > 0) await this.#call({ returns })
    } catch {
      // What can't be given back is counted as used.
    }
  }

  released(): void {
    // The number of permits in use is not limited.
  }

  unused({ n, at }: Taken): void {
    this.#reserved.giveBack([{ n, at, from: at }])
    this.#schedule()
  }

  get outage(): Error | undefined {
    return this.#outage.error
  }

  /** Whether it gives permits now although the engine can't be asked. */
  get goesWithout(): boolean {
    return this.#outage.goesWithout
  }

  /** Asks for no permit, to learn whether the engine can be asked; never rejects. */
  look(): Promise<void> {
    return this.#ask(true)
  }

  /** Notes that the engine could not be asked for something else. */
  away(error: Error): void {
    this.#outage.began(error)
  }

  /** A permit that the engine does not count. */
  #without(n: number, options: AcquireOptions | undefined, now: number): Promise<Permit> {
    if (this.#outage.takeRetry(now)) void this.#ask(true)
    return this.#outage.acquire(n, options, now)
  }

  /** A permit of a batch that can be used now. */
  #atHand(n: number, now: number): Permit | undefined {
    const instant = this.#reserved.first
    if (!instant || instant.left < n || instant.from > now || instant.until < now) return undefined
    return new Permit(this, n, this.#reserved.take(n).at, 0, 0)
  }

  #wait(n: number, priority: number, signal: AbortSignal | undefined, deadline: number): Promise<Permit> {
    return new Promise(settle => {
      this.#enter(new PermitWaiter(n, 0, settle), priority, signal, deadline)
    })
  }

  #try(n: number, priority: number, signal: AbortSignal | undefined): Promise<Permit> {
    return new Promise(settle => {
      const waiter = new TryWaiter(n, settle, false)
      this.#tries.add(waiter)
      this.#enter(waiter, priority, signal, Infinity)
    })
  }

  #enter(waiter: PermitWaiter, priority: number, signal: AbortSignal | undefined, deadline: number): void {
    this.#callers.enter(waiter, priority, signal, deadline)
    this.#schedule()
    this.#waiters.setTimer()
  }

  /** Whether any waiter waits for a turn that is yet to come. */
  get #waits(): boolean {
    return this.#waiters.callers > this.#tries.size
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

  /** Asks once for all that the present task brings. */
  #schedule(): void {
    // Callers that get their permits now may want the next ones together. `#handOut` comes here when it is done.
    if (this.#scheduled || this.#calling || this.#handing) return
    this.#scheduled = true
    void PASSED.then(() => {
      this.#scheduled = false
      if (!this.#handing) void this.#ask(false)
    })
  }

  /** Asks for what is wanted, if anything is. @param look whether to ask anyway. */
  async #ask(look: boolean): Promise<void> {
    if (this.#calling) return
    const now = this.#source.clock.now()
    // Without waiters, reserved permits go back at once.
    const isPointless = this.#pace.quietUntil > now && (this.#waits || this.outage !== undefined)
    const situation = this.#situation(now)
    const { units: wanted, waiters } = isPointless ? NOTHING : wantedUnits(situation)
    // The first call of a process reserves nothing: its answer tells how long a hold has to be. A permit reserved with
    // a shorter hold can't be used, and pushes the permits of other processes into the next window.
    const isFirst = wanted.length > 0 && !this.#calls.hasMeasured
    const units = isFirst ? NO_UNITS : wanted
    const deciders = isPointless && this.outage ? [] : [...this.#tries].filter(({ isDecision }) => isDecision)
    const before = deciders.length > 0 ? this.#before : undefined
    const explain = before && { n: 1, ahead: units.length > 0 ? 0 : before.ahead }
    if (units.length === 0 && !this.#reserved.owes && !explain && !look && !isFirst) {
      this.#lookLater(now)
      return
    }
    const returns = this.#reserved.takeReturns()
    // Asked for now and then, because the engine does not notify.
    const earlier = this.#pace.takeLook(now) ? earlierUnits(situation) : NO_UNITS
    // The explanations of before are out of date when this call is answered.
    for (const waiter of deciders) waiter.explanation = undefined
    this.#calling = true
    const { terms, hold } = situation
    try {
      const answer = await (this.#answer = this.#call({ units: earlier.concat(units), returns, explain }))
      const decided = this.#learn(answer)
      const explanation = before && explanationOf(answer.reserved, before.place)
      for (const waiter of deciders) waiter.explanation = explanation
      if (terms === this.#terms || keeps(terms, this.#terms)) {
        this.#settle(answer.reserved, hold, decided, units, waiters)
      } else {
        // Permits that were reserved under a limit that exceeds the present one are asked for anew.
        this.#reserved.giveBack(allReturned(answer.reserved, hold))
      }
    } catch (error) {
      // The permits that were to be given back count as used: they must not be given back twice.
      this.#failed(error as Error, waiters)
    } finally {
      this.#calling = false
      this.#goOn()
    }
  }

  #situation(now: number): Situation {
    const terms = this.#terms
    const part = this.#calls.part(terms)
    const hold = this.#calls.hold(terms)
    return { waiters: this.#waiters, reserved: this.#reserved, terms, part, hold, now }
  }

  #call(wanted: Wanted): Awaitable<Reservation> {
    return this.#calls.ask(this.#terms, this.#pace.horizon(this.#terms, this.#source.clock.now()), wanted)
  }

  /** Notes what every answer tells of the limiter as a whole. */
  #learn(answer: Reservation): Decided {
    const { now, pausedUntil, fadesAt } = answer.reserved
    this.#outage.ended()
    const decided = this.#calls.learn(answer)
    if (pausedUntil > now) {
      const until = decided.latest + (pausedUntil - now)
      this.#reserved.giveBackWhere(({ from }) => from < until)
    }
    // Permits for later can be had sooner once these limits are forgotten. All processes give them back before, so no
    // process that asks anew comes after another's.
    if (fadesAt < Infinity) this.#reserved.giveBackWhere(({ opensAt }) => opensAt > fadesAt)
    return decided
  }

  /**
   * Keeps the permits of an answer, and refuses the waiters for which there is none.
   * @param hold that was asked for. @param units those of the waiters; the answer may have others before them.
   */
  #settle(
    reserved: Reserved,
    hold: number,
    decided: Decided,
    units: readonly Unit[],
    waiters: readonly PermitWaiter[],
  ): void {
    // The first units are of waiters that have a permit already.
    const earlier = reserved.units.length - units.length
    // How many permits earlier waiters go on waiting for, by size: waiters of one size are served in order.
    const behind = new Map<number, number>()
    for (const [index, permits] of reserved.units.entries()) {
      const { n, at } = permits
      if (n > 0) this.#keep(stretchOf(permits, reserved, hold, decided, units[index - earlier]?.within === 0))
      else if (index >= earlier) {
        const refusal = {
          ahead: at - reserved.now,
          decidedAt: decided.earliest,
          fades: at === reserved.fadesAt,
        }
        if (this.#terms.batch > 1) this.#refusedBatch(waiters, refusal)
        else this.#refusedUnit(waiters[index - earlier]!, behind, refusal)
      }
    }
    if (this.#reserved.first) this.#pace.isServed()
    // There is no permit either for tries that came meanwhile.
    const quiet = this.#pace.quietUntil - this.#calls.answeredAt
    if (quiet > 0) {
      for (const waiter of [...this.#tries]) if (!waiters.includes(waiter)) this.#refuseTry(waiter, quiet)
    }
  }

  #keep(instant: ReservedInstant): void {
    const { from, until } = instant
    // An answer that took too long leaves no time to use it: the next hold is longer.
    if (from > until || until < this.#calls.answeredAt) this.#reserved.giveBack([returned(instant)])
    else this.#reserved.add(instant)
  }

  /** Nothing more could be reserved for these waiters: the permits that are open go to the first of them. */
  #refusedBatch(waiters: readonly PermitWaiter[], refusal: Refusal): void {
    let open = this.#reserved.openPermits(this.#calls.answeredAt)
    for (const waiter of waiters) {
      if (waiter.n <= open) open -= waiter.n
      else this.#refused(waiter, undefined, refusal)
    }
  }

  #refusedUnit(waiter: PermitWaiter, behind: Map<number, number>, refusal: Refusal): void {
    const others = behind.get(waiter.n) ?? 0
    this.#refused(waiter, others, refusal)
    if (waiter.isQueued && !(waiter instanceof TryWaiter)) behind.set(waiter.n, others + waiter.n)
  }

  /**
   * Nothing could be reserved for this waiter. @param others how many permits come before its own; undefined where
   * another unit may have room for it.
   */
  #refused(waiter: PermitWaiter, others: number | undefined, { ahead, decidedAt, fades }: Refusal): void {
    if (!waiter.isQueued) return
    if (waiter instanceof TryWaiter) return this.#refuseTry(waiter, ahead)
    const deadline = waiter.patience?.deadline ?? Infinity
    if (others !== undefined && deadline < Infinity) {
      const turn = ahead + leastDelay(this.#terms.windows, others)
      if (decidedAt + turn > deadline) {
        return this.#callers.refuse(waiter, this.#tooLate(deadline - decidedAt, turn))
      }
    }
    this.#pace.isRefused(ahead, decidedAt, fades, this.#terms, this.#calls.answeredAt)
  }

  /** @param readyIn milliseconds until there may be a permit for it. */
  #refuseTry(waiter: TryWaiter, readyIn: number): void {
    // The try came after the call that has just been answered.
    if (isUntold(waiter)) return
    if (waiter.explanation) waiter.explanation = notBefore(waiter.explanation, readyIn)
    this.#callers.refuse(waiter, busy(0, 0, this.#context))
  }

  /** The engine could not be asked for these waiters. */
  #failed(error: Error, waiters: readonly PermitWaiter[]): void {
    this.#calls.failed()
    if (error instanceof ClosedError) {
      this.shut(error)
      return this.refuseAll()
    }
    this.away(error)
    switch (this.#terms.onUnavailable) {
      case 'error':
        for (const waiter of waiters) if (waiter.isQueued) this.#callers.refuse(waiter, error)
        return
      case 'closed':
        this.#pace.askNotBefore(this.#outage.retryAt)
        for (const waiter of [...this.#tries]) this.#callers.refuse(waiter, error)
        return
      default:
        for (const waiter of this.#waiters) this.#goWithout(waiter)
    }
  }

  /** Has a waiter go on without the engine, for what is left of its wait. */
  #goWithout(waiter: PermitWaiter): void {
    const now = this.#calls.answeredAt
    const { priority } = waiter.rank!
    const { signal, deadline = Infinity } = waiter.patience ?? {}
    const wait = waiter instanceof TryWaiter ? 0 : Math.max(deadline - now, 0)
    this.#callers.leave(waiter)
    this.#left(waiter)
    waiter.settle(this.#without(waiter.n, { wait, signal, priority }, now))
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
    this.#callers.refuseLate(now, this.outage)
    this.#returnOver(now)
    if (this.#giveOne(now)) return this.#goOn()
    this.#callers.refuseDue(now, this.outage)
    this.#schedule()
    this.#lookLater()
  }

  /** Gives back the permits that can't be used any more. */
  #returnOver(now: number): void {
    for (let { first } = this.#reserved; first && first.until < now; { first } = this.#reserved) {
      if (this.#waiters.first) this.#noteUse(first, now)
      this.#reserved.giveBackFirst()
    }
  }

  /** Uses the first reserved instant if it is time for it; returns false when it is not. */
  #giveOne(now: number): boolean {
    const { first } = this.#reserved
    if (!first || first.from > now) return false
    const waiter = this.#waiterFor(first.left)
    if (waiter) {
      this.#noteUse(first, now)
      this.#reserved.take(waiter.n)
      this.#callers.leave(waiter)
      this.#left(waiter)
      waiter.settle(new Permit(this, waiter.n, first.at, 0, 0))
      return true
    }
    // A later caller may still want the rest of the batch.
    if (this.#terms.batch > 1 && !this.#waits) return false
    this.#reserved.giveBackFirst()
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
      if (fits && !isUntold(waiter)) return waiter
    }
    return undefined
  }

  /**
   * Sets when to look again. @param now when it was decided that nothing is to be asked for: an event that has fallen due
   * since then would have no timer otherwise.
   */
  #lookLater(now = this.#source.clock.now()): void {
    const { first: instant, last } = this.#reserved
    const { first: waiter } = this.#waiters
    const { lookAt, askAgainAt } = this.#pace
    let at = Infinity
    if (instant) {
      at = waiter && !isUntold(waiter) ? instant.from : instant.until
      if (waiter && last!.from > lookAt && !this.#calling) at = Math.min(at, lookAt)
    }
    if (waiter && askAgainAt > now) at = Math.min(at, askAgainAt)
    this.#waiters.lookAt(at, now)
  }

  timeOver(): void {
    const now = this.#source.clock.now()
    const { last } = this.#reserved
    const waitsLong = this.#waiters.first !== undefined && last !== undefined && last.from > now
    if (waitsLong && now >= this.#pace.lookAt) void this.#ask(true)
    if (!this.#handing) this.#handOut()
  }

  gaveUp(waiter: PermitWaiter): void {
    this.#left(waiter)
    // The permits that were reserved for it go to the next waiter. Without one they go back.
    this.#schedule()
  }

  #left(waiter: PermitWaiter): void {
    if (waiter instanceof TryWaiter) this.#tries.delete(waiter)
    // The delay that the waiters who left would have kept need not hold for others.
    if (!this.#waits && !this.outage) this.#pace.askNow()
  }

  #check(n: number): void {
    whole('n', n, 1, this.#terms.most)
  }

  #tooLate(wait: number, ahead: number): TimedOutError {
    const turn = `its turn would be in ${Math.ceil(ahead)} ms at the earliest`
    return new TimedOutError(`no permit within ${Math.ceil(wait)} ms: ${turn}`, this.#context)
  }
}

/** What an answer tells of waiters for which nothing could be reserved. */
interface Refusal {
  /** Milliseconds until the first such turn, from when the engine decided. */
  readonly ahead: number
  /** Clock time. */
  readonly decidedAt: number
  /** Whether stricter limits are forgotten at that turn. */
  readonly fades: boolean
}

/** Whether permits that are reserved under some terms keep others, too. */
function keeps(one: BoxTerms, other: BoxTerms): boolean {
  return other.windows.every(window => one.windows.some(its => implies(its, window)))
}

const PASSED = Promise.resolve()
const NO_UNITS: readonly Unit[] = []
