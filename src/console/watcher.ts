import { wallOf, type Clock, type Timer } from '../clock.js'
import type { Box, LimiterReport, LockReport } from '../index.js'
import { failureText } from '../failure-text.js'
import { happenedTo, keyView, type Happened } from './key-view.js'
import { limiterViews } from './limiter-view.js'
import type {
  ChangeMessage,
  KeyEvent,
  KeyView,
  LimiterView,
  Message,
  PartyView,
  StateMessage,
} from './messages.js'

/** The engine is asked at most once in this time, in milliseconds. */
const LOOK_INTERVAL = 1000
/** Time without a viewer after which the timeline begins again, in milliseconds. */
const MAX_GAP = 10_000
/** Maximum number of events of the timeline. */
const MAX_EVENTS = 2000
/** How long an ended grant may still be seen after an operator ended it, in milliseconds. */
const BY_HAND_TTL = 30_000

/** What the watcher uses of a box. */
export type Watched = Pick<Box, 'engine' | 'inspect' | 'limiters'>

/** Receives messages. */
export type Viewer = (message: Message) => void

/** What the page can do, which the first message says. */
export type Abilities = Pick<StateMessage, 'readOnly' | 'hasDoctor'>

/**
 * Looks at an engine for all viewers: while there are any, it asks at most once a second, and sends them what has
 * changed.
 */
export class Watcher {
  readonly #box: Watched
  readonly #abilities: Abilities
  readonly #clock: Clock
  readonly #wall: () => number
  readonly #viewers = new Set<Viewer>()
  #keys: ReadonlyMap<string, KeyView> = new Map()
  #limiters: readonly LimiterView[] = []
  #events: KeyEvent[] = []
  #lastNumber = 0
  /** When the timeline began, and when the engine last answered; undefined before the first answer. */
  #times: { since: number; at: number } | undefined
  #nextLook: number
  /** When the engine was last asked, or has last replied. */
  #lookedAt = 0
  #timer: Timer | undefined
  #isLooking = false
  /** What operators have ended: tokens and sessions, and when. */
  readonly #byHand = new Map<string, number>()

  constructor(box: Watched, abilities: Abilities, clock: Clock) {
    this.#box = box
    this.#abilities = abilities
    this.#clock = clock
    this.#wall = wallOf(clock)
    this.#nextLook = clock.now()
  }

  /** Adds a viewer, which at once receives what is known, if that is fresh. Returns what removes it. */
  join(viewer: Viewer): () => void {
    this.#viewers.add(viewer)
    if (this.#isFresh()) viewer(this.#state())
    this.#schedule()
    return () => {
      this.#viewers.delete(viewer)
      if (this.#viewers.size > 0) return
      this.#timer?.cancel()
      this.#timer = undefined
    }
  }

  /** Remembers that an operator released the grant with this token, so that the timeline says so. */
  releasedByHand(token: string): void {
    this.#byHand.set(`token ${token}`, this.#clock.now())
  }

  /** Remembers that an operator revoked this session, so that the timeline says so. */
  revokedByHand(session: string): void {
    this.#byHand.set(`session ${session}`, this.#clock.now())
  }

  #isFresh(): boolean {
    return this.#times !== undefined && this.#clock.now() - this.#lookedAt <= MAX_GAP
  }

  #schedule(): void {
    if (this.#viewers.size === 0 || this.#timer || this.#isLooking) return
    const delay = Math.max(0, this.#nextLook - this.#clock.now())
    this.#timer = this.#clock.after(delay, () => void this.#look(), false)
  }

  async #look(): Promise<void> {
    this.#timer = undefined
    this.#isLooking = true
    const begun = this.#clock.now()
    if (!this.#isFresh()) this.#times = undefined
    this.#lookedAt = begun
    this.#nextLook = begun + LOOK_INTERVAL
    try {
      const [reports, limiters] = await Promise.all([
        collected<LockReport>(this.#box.inspect()),
        collected<LimiterReport>(this.#box.limiters()),
      ])
      // In the middle between the question and the reply.
      const at = this.#wall() - (this.#clock.now() - begun) / 2
      this.#send(this.#take(reports, limiters, at))
    } catch (error) {
      this.#send({ type: 'fault', at: this.#wall(), text: failureText(error) })
    } finally {
      this.#lookedAt = this.#clock.now()
      this.#isLooking = false
      this.#schedule()
    }
  }

  /** Takes a look's replies, and returns the message about them. */
  #take(reports: readonly LockReport[], limiters: readonly LimiterReport[], at: number): Message {
    const times = this.#times
    const isFirst = times === undefined
    const before = isFirst ? new Map<string, KeyView>() : this.#keys
    const keys = new Map(
      reports.map(report => [report.key, keyView(before.get(report.key), report, at, isFirst)]),
    )
    this.#keys = keys
    const limitersBefore = this.#limiters
    this.#limiters = limiterViews(limitersBefore, limiters, at)
    if (isFirst) {
      this.#times = { since: at, at }
      this.#events = []
      return this.#state()
    }
    this.#times = { since: times.since, at }
    const changed = [...keys.values()].filter(view => before.get(view.key) !== view)
    const gone = [...before.keys()].filter(key => !keys.has(key))
    const events = this.#record([
      ...changed.flatMap(view => happenedTo(before.get(view.key), view, at, this.#endedByHand)),
      ...gone.flatMap(key => happenedTo(before.get(key), undefined, at, this.#endedByHand)),
    ])
    const message: ChangeMessage = { type: 'change', at, keys: changed, gone, events }
    return this.#limiters === limitersBefore ? message : { ...message, limiters: this.#limiters }
  }

  #record(happened: readonly Happened[]): KeyEvent[] {
    const events = happened.map(event => ({ ...event, number: ++this.#lastNumber }))
    this.#events = [...this.#events, ...events].slice(-MAX_EVENTS)
    for (const [ended, when] of this.#byHand)
      if (this.#clock.now() - when > BY_HAND_TTL) this.#byHand.delete(ended)
    return events
  }

  readonly #endedByHand = ({
    session,
    token,
  }: PartyView): 'released by hand' | 'revoked by hand' | undefined => {
    if (this.#byHand.has(`token ${String(token)}`)) return 'released by hand'
    return this.#byHand.has(`session ${session}`) ? 'revoked by hand' : undefined
  }

  #state(): StateMessage {
    return {
      type: 'state',
      ...this.#times!,
      engine: this.#box.engine,
      ...this.#abilities,
      keys: [...this.#keys.values()],
      limiters: this.#limiters,
      events: this.#events,
    }
  }

  #send(message: Message): void {
    for (const viewer of this.#viewers) viewer(message)
  }
}

async function collected<T>(all: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const each of all) list.push(each)
  return list
}
