import type { Clock } from '../../../src/base/clock.js'
import type { PermitReservation } from '../../../src/engine/contract.js'
import type { ReturnedPermits, Unit } from '../../../src/engine/limits/reservation.js'
import type * as Errors from '../../../src/base/errors.js'
import type * as LimiterErrorsModule from '../../../src/limits/limiter-errors.js'
import type * as WaiterModule from '../../../src/limits/callers.js'
import type * as CallersModule from '../../../src/limits/remote/box-callers.js'
import type * as OptionsModule from '../../../src/limits/remote/box-limiter-options.js'
import { LatencyEstimator } from '../../../src/limits/remote/latency-estimator.js'
import { Pace } from '../../../src/limits/remote/pace.js'
import type * as MachineModule from '../../../src/limits/remote/reservation-machine.js'
import type { PermitWaiter } from '../../../src/limits/callers.js'

/** The modules under test, which may be a copy with a mistake in it. */
export interface Modules {
  readonly errors: Pick<typeof Errors, 'UnavailableError' | 'IndeterminateError' | 'ClosedError'>
  readonly limiterErrors: Pick<typeof LimiterErrorsModule, 'LimiterErrors'>
  readonly waiter: Pick<typeof WaiterModule, 'PermitWaiter'>
  readonly callers: Pick<typeof CallersModule, 'BoxCallers' | 'TryWaiter'>
  readonly options: Pick<typeof OptionsModule, 'boxTerms'>
  readonly machine: Pick<typeof MachineModule, 'ReservationMachine'>
}

/** The limits between which a client changes: two permits in 20 ms, and one. */
export function termsOf(
  { options }: Modules,
  onUnavailable: 'error' | 'closed',
): readonly OptionsModule.BoxTerms[] {
  return [2, 1].map(limit => options.boxTerms({ limit, per: 20, onUnavailable }))
}

/** How the engine decides a call. */
const DECISIONS = ['now', 'later', 'mixed', 'beyond', 'paused'] as const
type DecisionKind = (typeof DECISIONS)[number]

/** Something that happens to a client. */
export type WorldEvent =
  | 'come'
  | 'come-for-30'
  | 'try'
  | 'decide'
  | 'first-gives-up'
  | 'last-gives-up'
  | 'step'
  | DecisionKind
  | 'reply'
  | 'unavailable'
  | 'indeterminate'
  | 'pass'
  | 'slow'
  | 'probe'
  | 'timer'
  | 'refund'
  | 'change'
  | 'close'

interface Caller {
  readonly kind: 'patient' | 'try' | 'decide'
  readonly waiter: PermitWaiter
  /** Number of replies without a permit for it. */
  refusals: number
}

interface Sent {
  readonly asked: number
  readonly kind: DecisionKind | undefined
  readonly decidedAt: number
  readonly answer: Pick<PermitReservation, 'reserved'> | undefined
}

const MAX_CALLERS = 3
const LATER = 30
const BEYOND = 600
/** Longer than the hold. */
const SLOW = 6
/** Earlier times count as equal, in milliseconds from now. */
const PAST = -50

/**
 * One machine with its queue, under a clock that only `pass` and `slow` move, and an engine that may decide anything
 * that it is allowed to. `apply` and `check` throw when a promise is broken.
 */
export class MachineWorld implements Clock {
  readonly #modules: Modules
  readonly #machine: MachineModule.ReservationMachine
  readonly #queue: CallersModule.BoxCallers
  readonly #terms: readonly OptionsModule.BoxTerms[]
  #time = 1000
  #timer: { readonly at: number; readonly task: () => void } | undefined
  #callers: Caller[] = []
  #sent: Sent | undefined
  #isClosed = false
  /** Number of timers that fired since anything else happened. */
  #spins = 0
  /** The permits of each instant that the engine counts for this client, and no caller has used. */
  readonly #open = new Map<number, number>()
  /** Intervals in which the permits of each instant can be used, and whether they keep the lower limit, too. */
  readonly #stretches = new Map<number, (readonly [from: number, until: number, isLow: boolean])[]>()
  #refundable: number | undefined

  /** @param terms the limits between which `change` changes */
  constructor(modules: Modules, terms: readonly OptionsModule.BoxTerms[]) {
    this.#modules = modules
    this.#terms = terms
    const errors = new modules.limiterErrors.LimiterErrors('api')
    const owner = {
      timeOver: () => {
        if (this.#machine.wake()) this.#step()
      },
      gaveUp: () => this.#machine.left(),
    }
    this.#queue = new modules.callers.BoxCallers(this, owner, errors)
    const pace = new NearPace(new LatencyEstimator())
    this.#machine = new modules.machine.ReservationMachine(this.#terms[0]!, this.#queue, pace, errors)
  }

  now(): number {
    return this.#time
  }

  after(delay: number, task: () => void): { cancel: () => void } {
    const timer = { at: this.#time + delay, task }
    this.#timer = timer
    return {
      cancel: () => {
        if (this.#timer === timer) this.#timer = undefined
      },
    }
  }

  /** The events that may come next. */
  get enabled(): WorldEvent[] {
    const machine = this.#machine
    const events: WorldEvent[] = []
    const { callers } = this.#queue.queue
    const isQuiet = machine.quietUntil > this.#time
    if (machine.due !== 'none') events.push('step')
    if (callers < MAX_CALLERS && !this.#isClosed) {
      events.push('come', 'come-for-30', 'decide')
      if (!isQuiet || machine.outage) events.push('try')
    }
    if (callers > 0) events.push('first-gives-up')
    if (callers > 1) events.push('last-gives-up')
    if (this.#sent?.answer) events.push('reply')
    else if (this.#sent) events.push(...DECISIONS, 'unavailable')
    if (this.#sent) events.push('indeterminate', 'slow', 'probe')
    if (this.#timer && this.#timer.at <= this.#time) events.push('timer')
    if (this.#nextMoment < Infinity) events.push('pass')
    if (this.#refundable !== undefined) events.push('refund')
    if (!this.#isClosed) events.push('change', 'close')
    return events
  }

  /** @throws Error that says which promise is broken */
  apply(event: WorldEvent): void {
    if (event !== 'timer' && event !== 'step') this.#spins = 0
    this.#happen(event)
    const isSeen = event !== 'pass' && event !== 'slow' && !DECISIONS.includes(event as DecisionKind)
    if (isSeen && this.#machine.due === 'none')
      this.#queue.queue.checkAt(this.#machine.nextCheck(this.#time), this.#time)
    this.#callers = this.#callers.filter(({ waiter }) => waiter.isQueued)
  }

  /** @throws Error that says which promise the state breaks */
  check(): void {
    this.#checkPermits()
    if (this.#machine.due === 'none') this.#checkRest()
  }

  /** Equal for states with the same possible futures. */
  get key(): string {
    const { due, call, pace, reserved, outage, retryAt, hasUnused, refusedTries, terms } = this.#machine
    const rel = (time: number): number => Math.max(time - this.#time, PAST)
    const place = (waiter: PermitWaiter): number => this.#callers.findIndex(one => one.waiter === waiter)
    const permits = (all: readonly ReturnedPermits[]): unknown => all.map(({ n, at }) => [n, rel(at)])
    return JSON.stringify([
      due,
      call && [
        rel(call.askedAt),
        call.request.units.length,
        call.units.map(({ within }) => within),
        call.waiters.map(place),
        call.deciders.map(place),
        permits(call.request.returns),
        call.terms === terms,
      ],
      this.#sent && [this.#sent.kind, rel(this.#sent.decidedAt)],
      pace.behind ? reserved.all.indexOf(pace.behind) : [rel(pace.until)],
      pace.unservedSince !== undefined && rel(pace.unservedSince),
      Math.max(rel(pace.seekAt), -1),
      outage && Math.max(rel(retryAt), -1),
      reserved.all.map(({ left, engineAt, from, until }) => [left, rel(engineAt), rel(from), rel(until)]),
      permits(reserved.owed),
      hasUnused,
      refusedTries.map(([waiter, readyIn]) => [place(waiter), readyIn]),
      this.#callers.map(({ kind, waiter, refusals }) => {
        const { isRepeated, explanation } = waiter as CallersModule.TryWaiter
        return [kind, refusals, rel(waiter.waitLimit?.deadline ?? Infinity), isRepeated, !!explanation]
      }),
      rel(this.#timer?.at ?? Infinity),
      terms === this.#terms[0],
      this.#isClosed,
      this.#spins,
      this.#refundable !== undefined && rel(this.#refundable),
    ])
  }

  #happen(event: WorldEvent): void {
    const machine = this.#machine
    const { queue } = this.#queue
    switch (event) {
      case 'come':
        return this.#enter('patient', Infinity)
      case 'come-for-30':
        machine.pace.openBeyondPart()
        return this.#enter('patient', 30)
      case 'try':
      case 'decide':
        return this.#enter(event, Infinity)
      case 'first-gives-up':
        return this.#giveUp(queue.first!)
      case 'last-gives-up':
        return this.#giveUp([...queue].at(-1)!)
      case 'step':
        return this.#step()
      case 'reply':
        return this.#reply()
      case 'unavailable':
        return this.#fail(new this.#modules.errors.UnavailableError('unavailable'))
      case 'indeterminate':
        // Permits that it may have returned count as used.
        for (const { at, n } of this.#underWay) this.#count(at, -n)
        return this.#fail(new this.#modules.errors.IndeterminateError('no reply'))
      case 'pass':
        this.#time = this.#nextMoment
        return
      case 'slow':
        this.#time += SLOW
        return
      case 'probe':
        return this.#ask(true)
      case 'timer':
        if (++this.#spins > 3) throw new Error('a timer is set again and again for the same time')
        return this.#fire()
      case 'refund': {
        const at = this.#refundable!
        this.#refundable = undefined
        this.#count(at, 1)
        return machine.refunded({ n: 1, at, from: at })
      }
      case 'change':
        return machine.changed(this.#terms.find(terms => terms !== machine.terms)!)
      case 'close':
        this.#isClosed = true
        return this.#queue.refuseAll(new this.#modules.errors.ClosedError('closed'))
      default:
        return this.#decide(event)
    }
  }

  #enter(kind: Caller['kind'], wait: number): void {
    const settle = (outcome: unknown): void => void Promise.resolve(outcome).catch(() => undefined)
    const { waiter: waiters, callers } = this.#modules
    const waiter =
      kind === 'patient'
        ? new waiters.PermitWaiter({ n: 1 }, 1, 0, settle)
        : new callers.TryWaiter({ n: 1 }, 1, settle, kind === 'decide')
    this.#callers.push({ kind, waiter, refusals: 0 })
    this.#queue.enter(waiter, { wait, signal: undefined, priority: 0, tenant: undefined }, this.#time + wait)
    this.#machine.gather()
  }

  #giveUp(waiter: PermitWaiter): void {
    this.#queue.refuse(waiter, new this.#modules.errors.ClosedError('gave up'))
  }

  #step(): void {
    const machine = this.#machine
    if (machine.due === 'gather') this.#ask(false)
    else if (machine.due === 'give') {
      const grant = machine.give(this.#time)
      if (grant) this.#granted(grant)
    }
  }

  #ask(isProbe: boolean): void {
    const wasUnderWay = this.#sent !== undefined
    const call = this.#machine.ask(this.#time, isProbe)
    if (!call) return
    if (wasUnderWay) throw new Error('two calls are under way')
    if (
      this.#callers.some(
        ({ kind, refusals, waiter }) => kind !== 'patient' && refusals > 1 && call.waiters.includes(waiter),
      )
    )
      throw new Error('a try waits although the engine has refused it twice')
    this.#sent = { asked: this.#time, kind: undefined, decidedAt: 0, answer: undefined }
  }

  #granted({ waiter, at }: MachineModule.Grant): void {
    if (this.#isClosed) throw new Error('a permit is given after the close')
    if (!this.#open.get(at)) throw new Error('more permits of an instant are given than were reserved')
    const inTime = this.#stretches
      .get(at)!
      .filter(([from, until]) => from <= this.#time && this.#time <= until)
    const isHigh = this.#machine.terms === this.#terms[0]
    if (!inTime.some(([, , isLow]) => isHigh || isLow))
      throw new Error(
        'a permit is given at another time, or under another limit, than that for which it was reserved',
      )
    for (const { waiter: other, kind } of this.#callers) {
      if (other === waiter) break
      if (other.isQueued && kind === 'patient') throw new Error('a caller is overtaken')
    }
    this.#count(at, -1)
    this.#refundable = at
  }

  #decide(kind: DecisionKind): void {
    const now = this.#time
    const { request } = this.#machine.call!
    for (const { at, n } of request.returns) this.#count(at, -n)
    const pausedUntil = kind === 'paused' ? now + BEYOND : -Infinity
    const ahead = (index: number): number =>
      kind === 'now' || (kind === 'mixed' && index === 0)
        ? 0
        : kind === 'later' || kind === 'mixed'
          ? LATER
          : BEYOND
    const reserve = ({ n, within }: Unit, index: number): { n: number; at: number } => {
      const wait = ahead(index)
      return { n: wait <= Math.min(within, request.horizon) ? n : 0, at: now + wait }
    }
    const reserved = {
      now,
      units: request.units.map(reserve),
      hold: this.#machine.terms.hold,
      pausedUntil,
      fadesAt: Infinity,
      contenders: 1,
      explained: request.explain && { ready: now, binding: undefined, reports: [] },
    }
    this.#sent = { ...this.#sent!, kind, decidedAt: now, answer: { reserved } }
  }

  #reply(): void {
    const { asked, decidedAt, answer } = this.#sent!
    const { reserved } = answer!
    const call = this.#machine.call!
    this.#sent = undefined
    for (const { n, at } of reserved.units) {
      if (n === 0) continue
      this.#count(at, n)
      const stretch = [
        this.#time + at - decidedAt,
        asked + at - decidedAt + reserved.hold,
        call.terms === this.#terms[1],
      ] as const
      this.#stretches.set(at, [...(this.#stretches.get(at) ?? []), stretch])
    }
    const earlier = reserved.units.length - call.units.length
    for (const caller of this.#callers) {
      const unit = call.waiters.indexOf(caller.waiter)
      if (unit >= 0 && reserved.units[earlier + unit]!.n === 0) caller.refusals++
    }
    this.#machine.replied({ reserved, earliest: asked, latest: this.#time }, this.#time)
  }

  #fail(error: Error): void {
    this.#sent = undefined
    this.#machine.failed(error, this.#time)
  }

  #fire(): void {
    const { task } = this.#timer!
    this.#timer = undefined
    task()
  }

  /** The permits that the call under way returns, if the engine has not decided it. */
  get #underWay(): readonly ReturnedPermits[] {
    return this.#sent && !this.#sent.answer ? this.#machine.call!.request.returns : []
  }

  #count(at: number, n: number): void {
    this.#open.set(at, (this.#open.get(at) ?? 0) + n)
  }

  get #nextMoment(): number {
    const { reserved, retryAt, quietUntil, outage, pace } = this.#machine
    const { first } = reserved
    const moments = [this.#timer?.at ?? Infinity, this.#queue.queue.earliestDeadline, quietUntil, pace.seekAt]
    if (first) moments.push(first.from, first.until + 1)
    if (outage) moments.push(retryAt)
    return Math.min(...moments.filter(moment => moment > this.#time))
  }

  #checkPermits(): void {
    const known = new Map<number, number>()
    const add = (at: number, n: number): unknown => known.set(at, (known.get(at) ?? 0) + n)
    for (const { engineAt, left } of this.#machine.reserved.all) add(engineAt, left)
    for (const { at, n } of [...this.#machine.reserved.owed, ...this.#underWay]) add(at, n)
    for (const [at, n] of this.#open) {
      const its = known.get(at) ?? 0
      if (its > n) throw new Error('more permits of an instant are kept or returned than were reserved')
      if (its < n) throw new Error('a permit is neither used, kept nor returned')
    }
    if ((this.#machine.call === undefined) !== (this.#sent === undefined))
      throw new Error('the machine does not know whether a call is under way')
  }

  /** Checks a state in which no step is due. */
  #checkRest(): void {
    const { call, reserved, outage, retryAt } = this.#machine
    const { queue, tries } = this.#queue
    const timer = this.#timer?.at ?? Infinity
    const latest = (time: number): number => Math.max(time, this.#time) + 0.01
    if (timer > latest(queue.earliestDeadline)) throw new Error('no timer is set for a deadline')
    const { first } = reserved
    if (!call && !outage && reserved.permits > queue.permits)
      throw new Error('more permits are kept than callers want')
    if (queue.first) {
      if (!call && timer > latest(this.#time + 2500))
        throw new Error('a caller waits without a call or a timer')
      if (!call && tries.size > 0 && !(outage && timer <= latest(retryAt)))
        throw new Error('a try waits without a call')
      const isAnswered = this.#callers.some(({ kind }) => kind === 'patient')
      if (first && isAnswered && timer > latest(first.from))
        throw new Error('a reserved permit is given late')
    } else if (!call && !outage) {
      if (reserved.owed.length > 0) throw new Error('permits are not returned although no caller waits')
    } else if (!call && reserved.owed.length > 0 && timer > latest(retryAt)) {
      throw new Error('permits are never returned')
    }
  }
}

/** The pace for an engine without latency. */
class NearPace extends Pace {
  override hold({ hold }: OptionsModule.BoxTerms): number {
    return hold
  }

  override get hasMeasured(): boolean {
    return true
  }

  override part(): number {
    return 2
  }

  override rotation(): number {
    return 20
  }

  override learn(answer: PermitReservation): PermitReservation {
    return answer
  }

  override noteUse(): void {
    // There is no delay to record.
  }
}
