import { onAbort } from '../abort-task.js'
import type { Clock, Timer } from '../clock.js'
import {
  channels,
  type GrantedEvent,
  type LockEvent,
  type LockRefusedEvent,
  type LostEvent,
  type ReleasedEvent,
  type ReleaseFailedEvent,
} from '../diagnostics.js'
import {
  HEARD_EVERY,
  hearWithin,
  placeLife,
  type Awaitable,
  type Cancel,
  type Engine,
  type Operation,
  type OutcomeOf,
  type ReadOutcome,
  type ReadSet,
  type Release,
  type Standing,
} from '../engine/contract.js'
import {
  AbortedError,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  SignalboxError,
  TimedOutError,
  UnavailableError,
  shown,
  type ErrorContext,
} from '../errors.js'
import type { ClaimSet } from './claims.js'
import { tokenOf, TurnGrant, type Giver } from './grant.js'
import { Hold, type HoldOwner, type LeaseKeeper } from './lease.js'

/** What one caller asks for, checked: times in milliseconds. */
export interface Ask {
  /** How long to wait; Infinity for as long as it takes. */
  readonly wait: number
  readonly lease: number
  readonly renew: boolean
  readonly label: string | undefined
  readonly signal: AbortSignal | undefined
  /** What to read in the same step as the grant. Only in a line of one's own: a turn reads nothing. */
  readonly read?: ReadSet | undefined
}

/** A hold goes through at most so many turns, or so many milliseconds, until others are asked for. */
const MOST_TURNS = 16
const LONGEST_TURNS = 5
/** The last turn that the token has room for. */
const LAST_TURN = 1023
/** A turn gets at least this part of the lease; below it the engine is asked for a full one. */
const ENOUGH_LEASE = 1 / 2
/** The pause after a look that found the engine out of reach: milliseconds. */
const LOOK_PAUSE = 200
/** Looking again sooner than this would be polling: milliseconds. */
const SHORTEST_LOOK = 5
/** What the engine is told when a wait is over whose timer is late: 0 would mean not to wait at all. */
const SHORTEST_WAIT = 1

/** What an engine answers; nothing, if it is somebody else's and has a mistake. */
type Answer = Standing | null | undefined

type HeldStanding = Standing & { readonly state: 'held' }

/** A caller in the local queue. */
class Waiter {
  previous: Waiter | undefined
  next: Waiter | undefined
  inLine = true
  timer: Timer | undefined
  /** Lets its signal go. */
  letGo: (() => void) | undefined

  constructor(
    readonly ask: Ask,
    readonly since: number,
    readonly resolve: (grant: TurnGrant) => void,
    readonly reject: (error: Error) => void,
    /** What was told of its request, if that had a listener. */
    readonly request: LockEvent | undefined,
  ) {}
}

/** The one request by which a line waits in the engine. */
interface Asking {
  readonly id: string
  sentAt: number
  lease: number
  /** How long anybody waits for it, as the engine was told. */
  wait: number
  /** `sent` while an answer is awaited. */
  state: 'sent' | 'queued'
  /** A wake-up that came while an answer was still on its way. */
  woken: boolean
  /** Until when an engine out of reach is tried again: clock time; 0 before it has said that it is in the queue. */
  keptUntil: number
  timer: Timer | undefined
  /** The place in the order in which the lines of this process asked. */
  readonly order: number
}

/** What a line needs of the session that it belongs to. */
export interface LineSession {
  readonly id: string
  readonly engine: Engine
  readonly clock: Clock
  readonly keeper: LeaseKeeper
  /** Set once nothing more can be asked. */
  readonly ending: Error | undefined
  /** Why no new request is taken; undefined when it is. */
  refusal(): Error | undefined
  /** A request id that no other request ever had. */
  nextRequest(): string
  /** Wake-ups for this request go to this line from now on. */
  expectWake(id: string, line: Line): void
  forgetWake(id: string): void
  /** After how long a waiter is to tell again that it lives: milliseconds. */
  untilBeat(): number
  /** Whether another request wanted a grant within the very call that gave it. */
  wantedEarly(id: string): boolean
  /** Counts a grant as in use until {@link finished}. */
  began(): void
  finished(): void
  /** Sends an operation; an engine inside the process answers at once. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /** Gives back what is not used here, see `giveBack`. */
  giveBack(operation: Cancel | Release, lease: number): void
}

let orders = 0

/**
 * All local callers with the same claim set: they stand in one line, and the line stands in the engine's queue with one
 * request, whatever their number. What the engine grants goes from turn to turn through the line.
 */
export class Line implements Giver, HoldOwner {
  readonly clock: Clock
  readonly keeper: LeaseKeeper
  readonly #session: LineSession
  /** Whether a grant can be handed on: shared ones would keep a writer out who came before. */
  readonly #handsOn: boolean
  /** Whether one hold keeps all others of this claim set out. */
  readonly #alone: boolean
  #head: Waiter | undefined
  #tail: Waiter | undefined
  /** Until when anybody in line waits, or has waited since it was empty: clock time. */
  #waitUntil = -Infinity
  #asking: Asking | undefined
  /** How many holds of this line are in use. */
  #holds = 0
  /** How many of them let others in beside them since they were downgraded. */
  #downgraded = 0
  /** When what the engine has told was heard last, and the turn that came then. */
  #turnsSince = 0
  #firstTurn = 0
  /** A hold that was released by its last user and is kept for the next one here. */
  #spare: { readonly hold: Hold; readonly turn: number } | undefined
  readonly #giveBackSpare = (): void => this.#dropSpare()

  constructor(
    session: LineSession,
    readonly set: ClaimSet,
    readonly noun: string,
  ) {
    this.#session = session
    this.clock = session.clock
    this.keeper = session.keeper
    this.#handsOn = !set.claims.some(claim => claim.mode === 'shared')
    this.#alone = set.claims.some(claim => claim.mode === 'exclusive')
  }

  get keys(): readonly string[] {
    return this.set.claims.map(claim => claim.key)
  }

  get waiting(): boolean {
    return this.#head !== undefined
  }

  get idle(): boolean {
    return !this.#head && !this.#asking && this.#holds === 0 && !this.#spare
  }

  /** Which of two waiting lines asked first; Infinity when this one has not asked. */
  get order(): number {
    return this.#asking?.order ?? Infinity
  }

  /** The grant if it can be had without waiting for anybody, else undefined. */
  attempt(ask: Ask, request?: LockEvent): Awaitable<TurnGrant | undefined> {
    const refusal = this.#session.refusal()
    if (refusal) throw refusal
    const again = this.#again(ask, request)
    if (again) return again
    if (this.#head || this.#taken()) return undefined
    const id = this.#session.nextRequest()
    const sentAt = this.clock.now()
    const taken = (standing: Answer): TurnGrant | undefined => {
      if (standing?.state !== 'held') {
        if (standing?.state === 'mismatch') throw this.#mismatch(standing.key, standing.max)
        if (isStanding(standing)) return undefined
        const error = this.#noStanding(standing)
        this.#forget(id, ask.lease, error)
        throw error
      }
      // Whatever was granted meanwhile ends with the session.
      if (this.#session.ending) throw this.#session.ending
      const hold = this.#hold(standing.number, id, sentAt, ask)
      return hold && this.#give(hold, 0, sentAt, standing.read, request)
    }
    const standing = this.#enqueue(id, ask, 0)
    if (!(standing instanceof Promise)) return taken(standing)
    return standing.then(taken, (error: unknown) => {
      this.#forget(id, ask.lease, error)
      throw toError(error, this.context())
    })
  }

  /** The grant as soon as it is this caller's turn. */
  acquire(ask: Ask, request?: LockEvent): Promise<TurnGrant> {
    const refusal = this.#session.refusal()
    if (refusal) return Promise.reject(refusal)
    if (ask.signal?.aborted) return Promise.reject(this.#aborted(ask.signal))
    const again = this.#again(ask, request)
    if (again) return Promise.resolve(again)
    if (!this.#mayAsk()) return this.#stand(ask, () => undefined, request)
    const id = this.#session.nextRequest()
    const sentAt = this.clock.now()
    const answer = this.#enqueue(id, ask, ask.wait)
    // The short way of a free lock in an engine of this process: no waiter, no request to follow.
    if (!(answer instanceof Promise) && answer?.state === 'held') {
      const hold = this.#begin(answer.number, id, sentAt, ask, sentAt)
      return Promise.resolve(this.#give(hold, 0, sentAt, answer.read, request))
    }
    const follow = (): void => this.#follow(this.#startAsking(id, ask, ask.wait, sentAt), answer)
    return this.#stand(ask, follow, request)
  }

  /** The engine may have reserved the keys for this line's request. */
  wake(id: string): void {
    const asking = this.#asking
    if (asking?.id !== id) return
    if (asking.state === 'queued') this.#look(asking)
    else asking.woken = true
  }

  /** Rejects all who wait. */
  failAll(error: Error): void {
    const asking = this.#asking
    if (asking) {
      this.#stopAsking(asking)
      // While the box drains it still has a session: an entry that nobody looks after would hold up those behind it.
      if (asking.state === 'queued') this.#takeOut(asking)
    }
    while (this.#head) this.#refuse(this.#head, error)
  }

  takeBack(grant: TurnGrant): Promise<void> {
    const { hold } = grant
    if (this.keeper.isLost(hold)) return Promise.reject(hold.loss!)
    if (hold.downgraded || hold.lastTurn) return this.#giveUp(hold)
    if (this.#head && !this.#asking && this.#handsOn) return this.#handOn(grant)
    if (this.#alone && !this.#head && this.#uncontested(grant)) {
      this.#publishRelease(hold)
      this.#keep(grant)
      return RELEASED
    }
    return this.#giveUp(hold)
  }

  /** The hold came to an end by other means, such as a commit that released it. */
  finished(grant: TurnGrant): void {
    const { hold } = grant
    grant.released = true
    this.keeper.remove(hold)
    // One that was lost while the commit was under way has been finished then.
    if (!hold.loss) {
      this.#publishRelease(hold)
      this.#finish(hold)
    }
    this.#pump()
  }

  holdLost(hold: Hold): void {
    this.#publishLoss(hold)
    // Its user may never find out, so neither those who wait here nor the engine wait for the release.
    this.#finish(hold)
    this.#session.giveBack({ type: 'cancel', id: hold.id }, hold.lease)
    this.#pump()
  }

  async downgrade(grant: TurnGrant): Promise<void> {
    const { hold } = grant
    const { id, number } = hold
    if (!hold.downgraded) {
      // From here on, because it may be released before the engine has answered.
      hold.downgraded = true
      this.#downgraded++
    }
    const done = await this.#session.send({ type: 'downgrade', id, number })
    if (!done) this.keeper.lose(hold, 'the engine has given it up')
    if (hold.loss) throw hold.loss
    // Writers who wait here are no longer reached by a turn.
    this.#pump()
  }

  /**
   * Keeps a released hold for the next caller here, because the engine tells as soon as somebody else wants it. Only then
   * is it given back: a biased lock, as virtual machines have for objects that one thread uses over and over.
   */
  #keep(grant: TurnGrant): void {
    const { hold, turn } = grant
    this.#finish(hold)
    this.#spare = { hold, turn }
    this.keeper.keep(hold, this.#giveBackSpare)
  }

  /** A further turn on a hold that was kept, if it fits the caller. */
  #again(ask: Ask, request: LockEvent | undefined): TurnGrant | undefined {
    if (!this.#spare) return undefined
    const { hold, turn } = this.#spare
    const now = this.clock.now()
    if (ask.label !== hold.label || !this.#turnFits(hold, ask, now)) {
      this.#dropSpare()
      return undefined
    }
    this.#spare = undefined
    hold.unused = undefined
    this.#holds++
    this.#session.began()
    return this.#give(hold, turn + 1, now, undefined, request)
  }

  #dropSpare(): void {
    const { hold } = this.#spare!
    this.#spare = undefined
    hold.unused = undefined
    this.keeper.remove(hold)
    this.#session.giveBack({ type: 'release', id: hold.id, number: hold.number }, hold.lease)
  }

  /** Whether it is known that nobody else waits for the hold, and its number has room for one more turn. */
  #uncontested({ hold, turn }: TurnGrant): boolean {
    return this.#session.engine.tellsWanted && !hold.contested && turn < LAST_TURN
  }

  /** Whether what is left of a hold is what the caller asks for. */
  #turnFits(hold: Hold, ask: Ask, now: number): boolean {
    return (
      ask.lease === hold.lease &&
      ask.renew === hold.renew &&
      !ask.read &&
      hold.deadline - now >= hold.lease * ENOUGH_LEASE
    )
  }

  /** Puts a caller at the end of the line and does what brings the line on. */
  #stand(ask: Ask, goOn: () => void, request: LockEvent | undefined): Promise<TurnGrant> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(ask, this.clock.now(), resolve, reject, request)
      this.#append(waiter)
      goOn()
      // Whoever was served at once needs neither timer nor listener.
      if (waiter.inLine) this.#limit(waiter)
    })
  }

  /** Whether a caller who comes now has to ask the engine, because nobody stands before it here. */
  #mayAsk(): boolean {
    return !this.#head && !this.#asking && !this.#taken()
  }

  /** Whether a hold of this line keeps all other callers of the line out. */
  #taken(): boolean {
    return this.#alone && this.#holds > this.#downgraded
  }

  /** Asks the engine for the first in line, unless it has been asked or a turn will reach it. */
  #pump(): void {
    const waiter = this.#head
    if (!waiter || this.#asking || this.#taken()) return
    const { ask } = waiter
    const wait = this.#patience()
    const asking = this.#startAsking(this.#session.nextRequest(), ask, wait, this.clock.now())
    this.#follow(asking, this.#enqueue(asking.id, ask, wait))
  }

  /** How long anybody in line waits from now on: milliseconds. */
  #patience(): number {
    return Math.max(this.#waitUntil - this.clock.now(), SHORTEST_WAIT)
  }

  #startAsking(id: string, ask: Ask, wait: number, sentAt: number): Asking {
    this.#session.expectWake(id, this)
    const { lease } = ask
    const order = ++orders
    return (this.#asking = {
      id,
      sentAt,
      lease,
      wait,
      state: 'sent',
      woken: false,
      keptUntil: 0,
      timer: undefined,
      order,
    })
  }

  #stopAsking(asking: Asking): void {
    asking.timer?.cancel()
    this.#session.forgetWake(asking.id)
    if (this.#asking === asking) this.#asking = undefined
  }

  #enqueue(id: string, ask: Ask, wait: number): Awaitable<Answer> {
    const { claims } = this.set
    const { lease, label, read } = ask
    const session = this.#session.id
    return this.#session.send({ type: 'enqueue', id, session, claims, lease, wait, label, read })
  }

  /** Looks where the request stands; claims what is reserved for it. */
  #look(asking: Asking): void {
    asking.timer?.cancel()
    asking.timer = undefined
    asking.state = 'sent'
    asking.woken = false
    const read = this.#head?.ask.read
    asking.sentAt = this.clock.now()
    asking.wait = this.#patience()
    const { id, lease, wait } = asking
    this.#follow(asking, this.#session.send({ type: 'claim', id, lease, wait, read }))
  }

  /** Goes on with the answer to something that was sent about the line's request. */
  #follow(asking: Asking, answer: Awaitable<Answer>): void {
    if (!(answer instanceof Promise)) return this.#arrived(asking, answer)
    answer.then(
      standing => this.#arrived(asking, standing),
      (error: unknown) => this.#failed(asking, error),
    )
  }

  #arrived(asking: Asking, standing: Answer): void {
    if (!isStanding(standing)) return this.#failed(asking, this.#noStanding(standing))
    if (this.#asking !== asking) {
      // All callers gave up meanwhile, or the box was closed.
      if (standing.state === 'held' || standing.state === 'queued') {
        this.#session.giveBack({ type: 'cancel', id: standing.id }, asking.lease)
      }
      return
    }
    switch (standing.state) {
      case 'held':
        return this.#granted(asking, standing)
      case 'queued':
        return this.#queued(asking, standing.lookAgain)
      case 'mismatch':
        return this.failAll(this.#mismatch(standing.key, standing.max))
      case 'gone':
      case 'busy':
        // The entry has expired while this process was away; the line stands behind again.
        this.#stopAsking(asking)
        return this.#pump()
    }
  }

  #queued(asking: Asking, lookAgain: number): void {
    asking.state = 'queued'
    asking.keptUntil = asking.sentAt + placeLife(asking)
    if (!this.#head) {
      // All callers gave up while the answer was on its way.
      this.#stopAsking(asking)
      return this.#takeOut(asking)
    }
    if (asking.woken) return this.#look(asking)
    const pause = Math.min(lookAgain, this.#untilHeard(asking))
    asking.timer = this.clock.after(Math.max(pause, SHORTEST_LOOK), () => this.#look(asking), true)
  }

  /** After how long the engine has to hear of the request again: milliseconds. */
  #untilHeard(asking: Asking): number {
    const within = hearWithin(asking)
    return within < HEARD_EVERY ? within : this.#session.untilBeat()
  }

  #granted(asking: Asking, { number, read, isAlone = false }: HeldStanding): void {
    this.#stopAsking(asking)
    const waiter = this.#head
    if (!waiter) return this.#takeOut(asking)
    const { ask } = waiter
    if (ask.lease !== asking.lease) {
      // The caller that the lease was set for is gone; the grant goes to the next on that one's own terms.
      const again = {
        ...asking,
        sentAt: this.clock.now(),
        lease: ask.lease,
        state: 'sent' as const,
        keptUntil: asking.sentAt + asking.lease,
        timer: undefined,
      }
      this.#asking = again
      this.#session.expectWake(again.id, this)
      return this.#look(again)
    }
    const hold = this.#hold(number, asking.id, asking.sentAt, ask)
    // Too late to be used, and given back: the line asks again.
    if (hold) {
      // Others may have come while it waited, and `wanted` is told of those only who come from now on.
      if (!isAlone) hold.contested = true
      hold.isAlone = isAlone
      this.#serve(hold, 0, read)
    }
    this.#pump()
  }

  #failed(asking: Asking, error: unknown): void {
    if (this.#asking === asking && this.#head && asking.keptUntil > this.clock.now()) {
      // The place in the queue is still ours; the engine may be back before it is lost.
      asking.state = 'queued'
      asking.timer = this.clock.after(LOOK_PAUSE, () => this.#look(asking), true)
      return
    }
    if (asking.keptUntil > 0) this.#takeOut(asking)
    else this.#forget(asking.id, asking.lease, error)
    if (this.#asking === asking) this.failAll(toError(error, this.context()))
  }

  /** Takes back what may have been applied all the same. */
  #forget(id: string, lease: number, error: unknown): void {
    if (!(error instanceof UnavailableError)) this.#session.giveBack({ type: 'cancel', id }, lease)
  }

  #takeOut({ id, lease }: Asking): void {
    this.#session.giveBack({ type: 'cancel', id }, lease)
  }

  /** The engine's grant as a hold, or undefined when it came after its own deadline and was given back. */
  #hold(number: number, id: string, sentAt: number, ask: Ask): Hold | undefined {
    const now = this.clock.now()
    if (now >= sentAt + ask.lease) {
      this.#session.giveBack({ type: 'release', id, number }, ask.lease)
      return undefined
    }
    return this.#begin(number, id, sentAt, ask, now)
  }

  /** @param now when the grant was heard: its turns count from then, so that a long way to the engine leaves time for them. */
  #begin(number: number, id: string, sentAt: number, ask: Ask, now: number): Hold {
    this.#holds++
    this.#turnsSince = now
    this.#firstTurn = 0
    this.#session.began()
    const { lease, renew, label } = ask
    const hold = new Hold(id, this.set, number, lease, sentAt + lease, renew, label, this)
    hold.contested = this.#session.wantedEarly(id)
    this.keeper.add(hold)
    return hold
  }

  /** Gives the hold to the first in line. */
  #serve(hold: Hold, turn: number, read?: ReadOutcome): void {
    const waiter = this.#head!
    this.#unlink(waiter)
    waiter.resolve(this.#give(hold, turn, waiter.since, read, waiter.request))
  }

  #give(
    hold: Hold,
    turn: number,
    since: number,
    read: ReadOutcome | undefined,
    request?: LockEvent,
  ): TurnGrant {
    hold.turn = turn
    hold.grantedAt = undefined
    const grant = new TurnGrant(this, hold, turn, read)
    if (grantsAreHeard()) {
      hold.grantedAt = this.clock.now()
      const waited = hold.grantedAt - since
      const { token } = grant
      channels.granted.publish(this.#event({ token, waited, request }) satisfies GrantedEvent)
    }
    return grant
  }

  /** Gives a hold to the next in line: as a further turn while that is fair, else by asking the engine. */
  #handOn(grant: TurnGrant): Promise<void> {
    const { hold } = grant
    const { ask } = this.#head!
    const now = this.clock.now()
    const next = grant.turn + 1
    if (next > LAST_TURN || !this.#turnFits(hold, ask, now)) return this.#pass(hold, ask)
    const isFair = next - this.#firstTurn < MOST_TURNS && now - this.#turnsSince < LONGEST_TURNS
    if (isFair || this.#uncontested(grant)) {
      this.#publishRelease(hold)
      this.#serve(hold, next)
      return RELEASED
    }
    return hold.isAlone && !hold.contested ? this.#hearFirst(grant) : this.#pass(hold, ask)
  }

  /** Hands a hold on once all is heard that has come by now, because others may want it since. */
  async #hearFirst(grant: TurnGrant): Promise<void> {
    await new Promise(setImmediate)
    const { hold, turn } = grant
    if (this.keeper.isLost(hold)) throw hold.loss!
    if (!this.#head || this.#asking || hold.lastTurn) return this.#giveUp(hold)
    if (!hold.contested) {
      this.#turnsSince = this.clock.now()
      this.#firstTurn = turn + 1
    }
    return this.#handOn(grant)
  }

  /** Keeps the hold if nobody else waits for it; else leaves it, and the line stands behind again. */
  #pass(hold: Hold, ask: Ask): Promise<void> {
    const next = this.#session.nextRequest()
    const wait = this.#patience()
    const asking = this.#startAsking(next, ask, wait, this.clock.now())
    const { id, number } = hold
    const { lease, label } = ask
    // Nobody uses it meanwhile, and the answer sets its deadline anew.
    this.keeper.remove(hold)
    const settle = (standing: Answer): void => {
      if (!isStanding(standing)) return fail(this.#noStanding(standing))
      if (standing.state !== 'gone') this.#publishRelease(hold)
      if (standing.state === 'held' && standing.id === id) return this.#kept(hold, standing, asking, ask)
      this.#finish(hold)
      this.#arrived(asking, standing)
      if (standing.state === 'gone') throw this.#goneBefore(hold)
    }
    const fail = (error: unknown): never => {
      this.#publishFailure(hold, error)
      this.#finish(hold)
      this.#session.giveBack({ type: 'cancel', id }, hold.lease)
      this.#failed(asking, error)
      throw error
    }
    return settled(this.#session.send({ type: 'pass', id, number, next, lease, wait, label }), settle, fail)
  }

  #kept(hold: Hold, { number, isAlone = false }: HeldStanding, asking: Asking, ask: Ask): void {
    if (this.#asking === asking) this.#stopAsking(asking)
    hold.number = number
    hold.lease = ask.lease
    hold.renew = ask.renew
    hold.label = ask.label
    hold.deadline = asking.sentAt + ask.lease
    hold.status = 'held'
    hold.contested = false
    hold.isAlone = isAlone
    const now = this.clock.now()
    const waiter = this.#head
    if (!waiter || waiter.ask.lease !== ask.lease || waiter.ask.renew !== ask.renew || now >= hold.deadline) {
      // The caller that it was kept for has given up meanwhile.
      this.#finish(hold)
      this.#session.giveBack({ type: 'release', id: hold.id, number }, hold.lease)
      return this.#pump()
    }
    this.keeper.add(hold)
    this.#turnsSince = now
    this.#firstTurn = 0
    this.#serve(hold, 0)
  }

  /** Releases a hold in the engine and asks for whoever still waits here. */
  #giveUp(hold: Hold): Promise<void> {
    this.keeper.remove(hold)
    this.#finish(hold)
    const { id, number } = hold
    const settle = (held: boolean): void => {
      if (!held) throw this.#goneBefore(hold)
      this.#publishRelease(hold)
    }
    const fail = (error: unknown): never => {
      this.#publishFailure(hold, error)
      // Trying again is safe: a release names its own grant. What is left undone ends with the lease.
      this.#session.giveBack({ type: 'release', id, number }, hold.lease)
      throw error
    }
    const released = settled(this.#session.send({ type: 'release', id, number }), settle, fail)
    this.#pump()
    return released
  }

  #finish(hold: Hold): void {
    this.#holds--
    if (hold.downgraded) this.#downgraded--
    this.#session.finished()
  }

  #append(waiter: Waiter): void {
    waiter.previous = this.#tail
    if (this.#tail) this.#tail.next = waiter
    else this.#head = waiter
    this.#tail = waiter
    this.#waitUntil = Math.max(this.#waitUntil, waiter.since + waiter.ask.wait)
  }

  #unlink(waiter: Waiter): void {
    waiter.inLine = false
    if (waiter.previous) waiter.previous.next = waiter.next
    else this.#head = waiter.next
    if (!this.#head) this.#waitUntil = -Infinity
    if (waiter.next) waiter.next.previous = waiter.previous
    else this.#tail = waiter.previous
    waiter.timer?.cancel()
    waiter.letGo?.()
  }

  /** Ends the wait at its time or when the caller aborts. */
  #limit(waiter: Waiter): void {
    const { wait, signal } = waiter.ask
    if (wait < Infinity || signal) {
      // Keeps the process alive: some signals, such as those of `AbortSignal.timeout`, don't. A waiter with neither does so
      // by the line's next look; behind a holder of this line only that holder can bring it on.
      waiter.timer = this.clock.after(wait, () => this.#timedOut(waiter), true)
    }
    if (signal) waiter.letGo = onAbort(signal, () => this.#leave(waiter, this.#aborted(signal)))
  }

  #timedOut(waiter: Waiter): void {
    this.#leave(
      waiter,
      new TimedOutError(`${this.#title()} was not to be had within ${waiter.ask.wait} ms`, this.context()),
    )
  }

  /** Takes one caller out; the last one takes the line's request along. */
  #leave(waiter: Waiter, error: Error): void {
    this.#refuse(waiter, error)
    const asking = this.#asking
    if (this.#head || !asking) return
    // An answer still on its way finds the next caller, or nobody and is given back.
    if (asking.state === 'sent' && !this.#session.engine.withdraw?.(asking.id)) return
    this.#stopAsking(asking)
    if (asking.state === 'queued') this.#takeOut(asking)
  }

  #refuse(waiter: Waiter, error: Error): void {
    this.#unlink(waiter)
    waiter.reject(error)
  }

  #title(): string {
    return `${this.noun} ${this.set.title} on ${this.#session.engine.name}`
  }

  /** What errors about the line's locks tell. */
  context(): { key: string; engine: string } {
    return { key: this.set.title, engine: this.#session.engine.name }
  }

  /** A message with what every message carries. Spreading takes many times as long. */
  #event<More extends object>(more: More): LockEvent & More {
    return Object.assign(
      { engine: this.#session.engine.name, session: this.#session.id, keys: this.keys },
      more,
    )
  }

  /** Tells of a request; what is returned belongs to its end. */
  requested(): LockEvent {
    const event = this.#event({})
    channels.requested.publish(event)
    return event
  }

  /** Tells of a request that was refused. @param since when it was asked: clock time. */
  refused(request: LockEvent, since: number, error: unknown): void {
    const waited = this.clock.now() - since
    channels.lockRefused.publish(this.#event({ waited, error, request }) satisfies LockRefusedEvent)
  }

  #publishRelease(hold: Hold): void {
    if (channels.released.hasSubscribers) channels.released.publish(this.#end(hold))
  }

  #publishFailure(hold: Hold, error: unknown): void {
    if (!channels.releaseFailed.hasSubscribers) return
    channels.releaseFailed.publish({ ...this.#end(hold), error } satisfies ReleaseFailedEvent)
  }

  #publishLoss(hold: Hold): void {
    if (!channels.lost.hasSubscribers) return
    channels.lost.publish({ ...this.#end(hold), error: hold.loss! } satisfies LostEvent)
  }

  /** The end of the turn that has the hold: each turn has one. */
  #end({ number, turn, grantedAt }: Hold): ReleasedEvent {
    // Unknown for one that was granted before anybody listened.
    const held = grantedAt === undefined ? 0 : this.clock.now() - grantedAt
    return this.#event({ token: tokenOf(number, turn), held })
  }

  #aborted(signal: AbortSignal): AbortedError {
    return new AbortedError(`waiting for ${this.#title()} was aborted`, {
      ...this.context(),
      cause: signal.reason,
    })
  }

  #goneBefore(hold: Hold): LostError {
    hold.loss ??= new LostError(`${this.#title()} was lost before it was released`, this.context())
    this.#publishLoss(hold)
    return hold.loss
  }

  #noStanding(answer: unknown): IndeterminateError {
    const state = typeof answer === 'object' && answer && 'state' in answer
    return new IndeterminateError(
      `the engine answered ${state ? `the state ${shown(answer.state)}` : shown(answer)}, which is no standing`,
      this.context(),
    )
  }

  #mismatch(key: string, max: number): InvalidArgumentError {
    return new InvalidArgumentError(
      `the semaphore ${key} is live with ${max} permits, and this caller names another number`,
      { key, engine: this.#session.engine.name },
    )
  }
}

const RELEASED = Promise.resolve()

/** Whether grants or their ends have a listener. */
function grantsAreHeard(): boolean {
  const { granted, released, releaseFailed, lost } = channels
  return (
    granted.hasSubscribers || released.hasSubscribers || releaseFailed.hasSubscribers || lost.hasSubscribers
  )
}

/** Whether an answer has a state that is known: one without would be waited for for ever. */
function isStanding(answer: Answer): answer is Standing {
  switch (answer?.state) {
    case 'held':
    case 'queued':
    case 'busy':
    case 'gone':
    case 'mismatch':
      return true
    default:
      return false
  }
}

/** Does what follows from an answer, at once when it is there, and settles when that is done. */
function settled<T>(
  answer: Awaitable<T>,
  done: (outcome: T) => void,
  failed: (error: unknown) => never,
): Promise<void> {
  if (answer instanceof Promise) return answer.then(done, failed)
  try {
    done(answer)
    return RELEASED
  } catch (error) {
    return Promise.reject(toError(error))
  }
}

function toError(error: unknown, context?: ErrorContext): Error {
  if (error instanceof SignalboxError) return error
  return new IndeterminateError(`the engine failed in a way it should not: ${String(error)}`, {
    ...context,
    cause: error,
  })
}
