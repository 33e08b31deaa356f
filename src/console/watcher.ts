import { wallOf, type Clock, type Timer } from '../base/clock.js'
import { shortDuration } from '../base/duration.js'
import type { Box, LimiterReport, LockReport } from '../index.js'
import { failureText } from '../base/failure-text.js'
import { printable } from '../base/printable.js'
import { happenedTo, keyView, type Happened } from './key-view.js'
import { limiterViews } from './limiter-view.js'
import type {
  ChangeMessage,
  FaultMessage,
  KeyEvent,
  KeyView,
  LimiterView,
  Message,
  PartyView,
  StateMessage,
} from './messages.js'

/** The engine is asked at most once in this time, in milliseconds. */
const LOOK_INTERVAL = 1000
/** How often viewers are notified while the engine does not reply, in milliseconds. */
const PATIENCE = 5000
/** Time without a viewer after which the timeline begins again, in milliseconds. */
const MAX_GAP = 10_000
/** Maximum number of events of the timeline. */
const MAX_EVENTS = 2000
/** Two looks at one time may differ by this, because replies are delayed and clocks are corrected, in milliseconds. */
const SLACK = 750
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
  /** What a new viewer receives; undefined until it is first asked for after a look. */
  #state: StateMessage | undefined
  /** Why the last look failed, if it did. */
  #fault: FaultMessage | undefined
  #lastNumber = 0
  /** When the timeline began, and when the engine last answered; undefined before the first answer. */
  #times: { since: number; at: number } | undefined
  #nextLook: number
  /** When the engine was last asked, or has last replied. */
  #lookedAt = 0
  #timer: Timer | undefined
  #isLooking = false
  /** How long the last look took, and by how much the wall clock was ahead of the other one, in milliseconds. */
  #lastLook = { duration: 0, offset: 0 }
  /** What operators have ended: grants and sessions, and when. */
  readonly #byHand = new Map<string, number>()

  constructor(box: Watched, abilities: Abilities, clock: Clock) {
    this.#box = box
    this.#abilities = abilities
    this.#clock = clock
    this.#wall = wallOf(clock)
    this.#nextLook = clock.now()
  }

  /** Adds a viewer, which at once receives what is known, if looks continue from that. Returns what removes it. */
  join(viewer: Viewer): () => void {
    this.#viewers.add(viewer)
    if (this.#isLooking || this.#isFresh()) {
      if (this.#times) viewer(this.#stateAt(this.#times))
      if (this.#fault) viewer(this.#fault)
    }
    this.#schedule()
    return () => {
      this.#viewers.delete(viewer)
      if (this.#viewers.size > 0) return
      this.#timer?.cancel()
      this.#timer = undefined
    }
  }

  /** Remembers that an operator releases a grant, so that the timeline says so. Returns what forgets it. */
  releasedByHand(key: string, token: string): () => void {
    const holder = this.#keys.get(key)?.holders.find(party => party.token === token)
    return holder ? this.#remember(grantOf(holder)) : () => undefined
  }

  /** Remembers that an operator revokes a session, so that the timeline says so. Returns what forgets it. */
  revokedByHand(session: string): () => void {
    return this.#remember(session)
  }

  #remember(ended: string): () => void {
    // A second click finds nothing to end, and must not undo what the first one did.
    if (this.#byHand.has(ended)) return () => undefined
    this.#byHand.set(ended, this.#clock.now())
    return () => void this.#byHand.delete(ended)
  }

  #isFresh(): boolean {
    return this.#clock.now() - this.#lookedAt <= MAX_GAP
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
    if (!this.#isFresh()) this.#forget()
    this.#lookedAt = begun
    this.#nextLook = begun + LOOK_INTERVAL
    const warnLater = (): Timer =>
      this.#clock.after(
        PATIENCE,
        () => {
          this.#fail(`the engine has not replied for ${shortDuration(this.#clock.now() - begun)}`)
          warning = warnLater()
        },
        false,
      )
    let warning = warnLater()
    try {
      const [reports, limiters] = await Promise.all([
        collected<LockReport>(this.#box.inspect()),
        collected<LimiterReport>(this.#box.limiters()),
      ])
      this.#fault = undefined
      this.#send(this.#take(reports, limiters, begun))
    } catch (error) {
      this.#fail(failureText(error))
    } finally {
      warning.cancel()
      this.#lookedAt = this.#clock.now()
      this.#isLooking = false
      this.#schedule()
    }
  }

  #fail(text: string): void {
    this.#fault = { type: 'fault', at: this.#wall(), text: printable(text) }
    this.#send(this.#fault)
  }

  /** Begins the timeline again. */
  #forget(): void {
    this.#times = undefined
    this.#fault = undefined
  }

  /** Takes the replies of a look that began at this time, and returns the message about them. */
  #take(reports: readonly LockReport[], limiters: readonly LimiterReport[], begun: number): Message {
    const duration = this.#clock.now() - begun
    const offset = this.#wall() - this.#clock.now()
    const last = this.#lastLook
    this.#lastLook = { duration, offset }
    // The times from before a jump of the clock can't be compared with those after it.
    if (Math.abs(offset - last.offset) > SLACK) this.#forget()
    // The engine replied to one of the questions at any time during each of the two looks.
    const slack = SLACK + (last.duration + duration) / 2
    // In the middle between the question and the reply.
    const at = this.#wall() - duration / 2
    const times = this.#times
    const isFirst = times === undefined
    const before = isFirst ? new Map<string, KeyView>() : this.#keys
    const keys = new Map(
      reports.map(report => [report.key, keyView(before.get(report.key), report, at, isFirst, slack)]),
    )
    this.#keys = keys
    const limitersBefore = this.#limiters
    this.#limiters = limiterViews(limitersBefore, limiters, at)
    this.#times = { since: times?.since ?? at, at }
    this.#state = undefined
    if (isFirst) {
      this.#events = []
      return this.#stateAt(this.#times)
    }
    const changed = [...keys.values()].filter(view => before.get(view.key) !== view)
    const gone = [...before.keys()].filter(key => !keys.has(key))
    const happened = (view: KeyView | undefined, after: KeyView | undefined): Happened[] =>
      happenedTo(view, after, at, this.#endedByHand, slack)
    const events = this.#record([
      ...changed.flatMap(view => happened(before.get(view.key), view)),
      ...gone.flatMap(key => happened(before.get(key), undefined)),
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

  readonly #endedByHand = (holder: PartyView): 'released by hand' | 'revoked by hand' | undefined => {
    if (this.#byHand.has(grantOf(holder))) return 'released by hand'
    return this.#byHand.has(holder.session) ? 'revoked by hand' : undefined
  }

  /** Many viewers may join at once, so the message, which may be large, is the same for all until the next look. */
  #stateAt(times: { since: number; at: number }): StateMessage {
    this.#state ??= {
      type: 'state',
      ...times,
      engine: this.#box.engine,
      ...this.#abilities,
      keys: [...this.#keys.values()],
      limiters: this.#limiters,
      events: this.#events,
    }
    return this.#state
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

/** A grant, apart from all others: tokens of different keys may be equal. */
function grantOf({ session, token }: PartyView): string {
  return `${session} ${token!}`
}
