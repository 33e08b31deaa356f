import type { SharedRing } from './shared-ring.js'
import type { Counter, LimitReport, Rules, Taken } from './tally.js'
import type { ThreadTurns } from './thread-turns.js'
import type { Times } from './times.js'

/** How long a thread may leave permits lying before the others go on without it: milliseconds. */
const PATIENCE = 150
/** After so long they are looked for: milliseconds. */
const LOOK_AGAIN = PATIENCE + 70

/** A limit as the ring knows it: the grant `limit` before has to be `memory` old. */
interface Look {
  readonly limit: number
  /** Milliseconds, the guard against jitter included. */
  readonly memory: number
}

/** The count of what several threads were given, on a ring in shared memory. */
export class SharedTally implements Counter {
  readonly running = 0
  readonly full = false
  readonly blank = false
  /** The number of the first grant of the last take. */
  mark = 0
  readonly #rules: Rules
  readonly #times: Times
  readonly #ring: SharedRing
  readonly #turns: ThreadTurns
  readonly #looks: readonly Look[]
  readonly #longest: number
  /** A grant that was claimed and not written when it was looked at, and since when. */
  #unwritten: { readonly grant: number; readonly since: number } | undefined

  /** @param jitter milliseconds. */
  constructor(rules: Rules, jitter: number, times: Times, ring: SharedRing, turns: ThreadTurns) {
    this.#rules = rules
    this.#times = times
    this.#ring = ring
    this.#turns = turns
    this.#looks = rules.windows.map(({ limit, per }) => ({ limit, memory: per + jitter }))
    this.#longest = Math.max(...this.#looks.map(({ memory }) => memory))
  }

  get most(): number {
    return Math.min(...this.#looks.map(({ limit }) => limit))
  }

  get paused(): boolean {
    return this.#times.now() < this.#ring.pausedUntil
  }

  take(n: number, ahead: number, _callers: number, _late: number, arrival: number): number {
    const ring = this.#ring
    while (true) {
      // In this order: see the proof at the ring.
      const { head } = ring
      const now = this.#times.now()
      if (now < ring.pausedUntil) return NaN
      const own = n + ahead
      const wanted = own + this.#turns.before(arrival)
      // Those before had their chance: permits have been there for a while.
      const left = wanted > own && this.#readyFrom(head, now, n, own) <= now - PATIENCE
      if (left && this.#turns.passOver(arrival, PATIENCE)) continue
      if (this.#readyFrom(head, now, n, wanted) > now) {
        const yields = arrival !== 0 && wanted > own && this.#readyFrom(head, now, n, own) <= now
        if (yields) this.#turns.yield()
        return NaN
      }
      if (!ring.claim(head, n)) continue
      const time = this.#times.now()
      if (!ring.stamp(head, n, time)) continue
      this.mark = head
      return time
    }
  }

  release(): void {
    // Nothing limits how many are in use.
  }

  refund({ n, at, mark }: Taken): void {
    this.#ring.refund(mark, n, at, this.#times.now() - this.#longest)
    this.#turns.tell()
  }

  pauseUntil(wall: number): void {
    this.#ring.pauseUntil(this.#times.fromWall(wall))
    this.#turns.tell()
  }

  readyAt(n: number, ahead: number, arrival: number): number {
    const now = this.#times.now()
    const { head, pausedUntil } = this.#ring
    const own = n + ahead
    const before = this.#turns.before(arrival)
    const turn = this.#readyFrom(head, now, n, own + before)
    if (arrival === 0 || before === 0) return Math.max(now, pausedUntil, turn)
    // There may be fewer before than can be known from here. Those who are tell when they have taken what they can.
    const soonest = this.#readyFrom(head, now, n, own + this.#turns.leastBefore(arrival))
    // If those before don't come for theirs, somebody has to notice.
    const look = Math.max(this.#readyFrom(head, now, n, own), now) + LOOK_AGAIN
    return Math.max(now, pausedUntil, Math.min(soonest > now ? soonest : turn, look))
  }

  binding(n: number, ahead: number): number | undefined {
    const now = this.#times.now()
    const { head } = this.#ring
    let longest = now
    let binding
    this.#looks.forEach((look, index) => {
      const ready = this.#lookReady(look, head, now, n + ahead)
      if (ready > longest) [longest, binding] = [ready, index]
    })
    return binding
  }

  reports(): LimitReport[] {
    const now = this.#times.now()
    const { head } = this.#ring
    return this.#looks.map(({ limit, memory }, index) => {
      const { per, kind } = this.#rules.windows[index]!
      let used = 0
      let oldest = now
      for (let back = 1; back <= limit; back++) {
        const grant = (head - back) | 0
        const time = this.#ring.timeOf(grant) ?? now
        if (now - time < memory) {
          // A free one after it can't be had before it.
          used = back
          oldest = Math.min(oldest, time)
        } else if (!this.#ring.isFree(grant)) break
      }
      const resetIn = used === 0 ? 0 : oldest + memory - now
      return { limit, per, window: kind, remaining: limit - used, resetIn }
    })
  }

  /** When the next `n` permits can be claimed, and so many in all will be there for whoever is last of those who want them. */
  #readyFrom(head: number, now: number, n: number, wanted: number): number {
    let ready = -Infinity
    for (const look of this.#looks) {
      // After a refund a later one can be free sooner. From the first to the last: see the proof at the ring.
      for (let own = 1; own <= n && own < wanted; own++) {
        ready = Math.max(ready, this.#lookReady(look, head, now, own))
      }
      ready = Math.max(ready, this.#lookReady(look, head, now, wanted))
    }
    return ready
  }

  #lookReady({ limit, memory }: Look, head: number, now: number, wanted: number): number {
    // Beyond the limit each permit follows the one `limit` before it by one window.
    const windows = Math.ceil(wanted / limit) - 1
    const grant = (head + wanted - windows * limit - 1 - limit) | 0
    const time = this.#ring.timeOf(grant)
    // An unwritten one counts as used now.
    return (time ?? this.#missing(grant, now)) + memory * (windows + 1)
  }

  /** Puts a time to a grant whose claimer has not written one for a whole window. */
  #missing(grant: number, now: number): number {
    if (this.#unwritten?.grant !== grant) this.#unwritten = { grant, since: now }
    else if (now - this.#unwritten.since >= this.#longest) {
      this.#ring.write(grant, now)
      this.#unwritten = undefined
    }
    return now
  }
}
