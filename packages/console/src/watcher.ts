import type { Box, LimiterReport, LockReport } from 'signalbox'
import { wallOf, type Clock, type Timer } from 'signalbox/engine'
import { failureText, printable, shortDuration } from 'signalbox/reports'
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

/** Minimum interval between two requests to the engine, in milliseconds. */
const LOOK_INTERVAL = 1000
/** Interval at which viewers are notified while the engine does not reply, in milliseconds. */
const PATIENCE = 5000
/** Time without a viewer after which the timeline begins again, in milliseconds. */
const MAX_GAP = 10_000
/** Maximum number of events of the timeline. */
const MAX_EVENTS = 2000
/**
 * Maximum difference between two readings of the same time, in milliseconds, because replies are delayed and clocks are
 * corrected.
 */
const SLACK = 750
/** Maximum time for which a grant may still be seen after an operator ended it, in milliseconds. */
const BY_HAND_TTL = 30_000

/** The parts of a box that the watcher uses. */
export type Watched = Pick<Box, 'engine' | 'inspect' | 'limiters'>

/** Receives messages. */
export type Viewer = (message: Message) => void

/** The abilities of the page. The first message contains them. */
export type Abilities = Pick<StateMessage, 'readOnly' | 'hasDoctor'>

/**
 * Watches an engine for all viewers. While there are any, asks the engine at most once a second, and sends the changes.
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
  /** The state for new viewers; undefined until the first viewer needs it after a look. */
  #state: StateMessage | undefined
  /** The failure of the last look; undefined if it succeeded. */
  #fault: FaultMessage | undefined
  #lastNumber = 0
  /** Beginning of the timeline, and time of the engine's last answer; undefined before the first answer. */
  #times: { since: number; at: number } | undefined
  #nextLook: number
  /** Time of the last request to the engine, or of the last reply. */
  #lookedAt = 0
  #timer: Timer | undefined
  #isLooking = false
  /** Duration of the last look, and offset of the wall clock from the other one, in milliseconds. */
  #lastLook = { duration: 0, offset: 0 }
  /** The grants and sessions that operators have ended, with the times. */
  readonly #byHand = new Map<string, number>()

  constructor(box: Watched, abilities: Abilities, clock: Clock) {
    this.#box = box
    this.#abilities = abilities
    this.#clock = clock
    this.#wall = wallOf(clock)
    this.#nextLook = clock.now()
  }

  /**
   * Adds a viewer. If the known state is recent, sends it to the viewer at once. Returns a function that removes the
   * viewer.
   */
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

  /** Records for the timeline that an operator releases a grant. Returns a function that removes the record. */
  releasedByHand(key: string, token: string): () => void {
    const holder = this.#keys.get(key)?.holders.find(party => party.token === token)
    return holder ? this.#remember(grantOf(holder)) : () => undefined
  }

  /** Records for the timeline that an operator revokes a session. Returns a function that removes the record. */
  revokedByHand(session: string): () => void {
    return this.#remember(session)
  }

  #remember(ended: string): () => void {
    // A second click finds nothing to end. It must not remove the record of the first one.
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

  /** Restarts the timeline. */
  #forget(): void {
    this.#times = undefined
    this.#fault = undefined
  }

  /** Processes the replies of a look that began at the time `begun`, and returns the message about them. */
  #take(reports: readonly LockReport[], limiters: readonly LimiterReport[], begun: number): Message {
    const duration = this.#clock.now() - begun
    const offset = this.#wall() - this.#clock.now()
    const last = this.#lastLook
    this.#lastLook = { duration, offset }
    // The times from before a jump of the clock can't be compared with those after it.
    if (Math.abs(offset - last.offset) > SLACK) this.#forget()
    // The engine may have replied at any time during each of the two looks.
    const slack = SLACK + (last.duration + duration) / 2
    // The middle between the request and the reply.
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

  /** Returns the state. All viewers that join before the next look share one message, because it may be large. */
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

/** Identifies a grant: tokens of different keys may be equal. */
function grantOf({ session, token }: PartyView): string {
  return `${session} ${token!}`
}
