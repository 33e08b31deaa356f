import type { InstantPermits, Reserved, ReturnedPermits } from '../../engine/limits/reserve-permits.js'
import type { Decided } from './reservation-calls.js'

/** Permits of one instant that are reserved for this process, and when they can be used. */
export interface ReservedInstant {
  /** Number of remaining permits. */
  left: number
  /** The instant, by the engine's clock. */
  readonly at: number
  /** From when they can be used, by the engine's clock. */
  readonly opensAt: number
  /** The earliest possible clock time of that moment. */
  readonly earliest: number
  /** The clock times from which and until which they can be used, both included. */
  readonly from: number
  readonly until: number
}

/**
 * Returns the clock times of this process between which permits can be used.
 * @param asked the requested hold. If it exceeds the hold in the reply, permits can be used before their instant.
 * @param isForNow whether they can be used at once, although their instant may have been rounded up.
 */
export function stretchOf(
  { n, at }: InstantPermits,
  reserved: Reserved,
  asked: number,
  { earliest, latest }: Decided,
  isForNow: boolean,
): ReservedInstant {
  const { now, hold } = reserved
  const opens = at - leadOf(reserved, asked)
  const opensAt = isForNow ? Math.min(opens, now) : opens
  return {
    left: n,
    at,
    opensAt,
    earliest: earliest + (opensAt - now),
    from: latest + (opensAt - now),
    until: earliest + (at - now) + hold,
  }
}

/** How long before their instants permits can be used, for a requested hold, in milliseconds. */
function leadOf({ hold }: Reserved, asked: number): number {
  return Math.max(asked - hold, 0)
}

/** The permits of a reply, to be returned unused. */
export function allReturned(reserved: Reserved, asked: number): ReturnedPermits[] {
  const taken = reserved.units.filter(({ n }) => n > 0)
  return taken.map(({ n, at }) => ({ n, at, from: at - leadOf(reserved, asked) }))
}

/** The permits of a reserved instant, to be returned. */
export function returned({ left, at, opensAt }: ReservedInstant): ReturnedPermits {
  return { n: left, at, from: opensAt }
}

/** Approximate maximum number of used entries left at the front. */
const MAX_USED = 64

/**
 * The permits that are reserved for a process and not used yet, in the order of their instants, and those that the
 * process has yet to return.
 */
export class ReservedPermits {
  #instants: ReservedInstant[] = []
  /** Number of used entries at the front. */
  #used = 0
  /** Permits that the next call returns. */
  #returns: ReturnedPermits[] = []

  get first(): ReservedInstant | undefined {
    return this.#instants[this.#used]
  }

  get permits(): number {
    let permits = 0
    for (let index = this.#used; index < this.#instants.length; index++)
      permits += this.#instants[index]!.left
    return permits
  }

  /** Number of permits that can be used now. @param now clock time. */
  openPermits(now: number): number {
    let permits = 0
    for (let index = this.#used; index < this.#instants.length; index++) {
      const { left, from } = this.#instants[index]!
      if (from <= now) permits += left
    }
    return permits
  }

  /** The latest reserved instant. */
  get last(): ReservedInstant | undefined {
    return this.first && this.#instants.at(-1)
  }

  add(instant: ReservedInstant): void {
    const instants = this.#instants
    if (instant.at >= (this.last?.at ?? -Infinity)) {
      instants.push(instant)
      return
    }
    let place = instants.length
    while (place > this.#used && instants[place - 1]!.at > instant.at) place--
    instants.splice(place, 0, instant)
  }

  /** Takes permits from the first reserved instant, which must have enough. */
  take(n: number): ReservedInstant {
    const instant = this.first!
    instant.left -= n
    if (instant.left === 0) this.#dropFirst()
    return instant
  }

  /** Number of reserved instants of each size. */
  sizes(): Map<number, number> {
    const sizes = new Map<number, number>()
    for (let index = this.#used; index < this.#instants.length; index++) {
      const { left } = this.#instants[index]!
      sizes.set(left, (sizes.get(left) ?? 0) + 1)
    }
    return sizes
  }

  /** The last reserved instant of each size. */
  lastOfSizes(): Map<number, ReservedInstant> {
    const last = new Map<number, ReservedInstant>()
    for (let index = this.#used; index < this.#instants.length; index++) {
      last.set(this.#instants[index]!.left, this.#instants[index]!)
    }
    return last
  }

  /** Whether there are permits to return. */
  get owes(): boolean {
    return this.#returns.length > 0
  }

  giveBack(permits: readonly ReturnedPermits[]): void {
    this.#returns.push(...permits)
  }

  /** Returns the permits of the first reserved instant. */
  giveBackFirst(): void {
    this.#returns.push(returned(this.first!))
    this.#dropFirst()
  }

  /** Returns the permits of the last `count` reserved instants of a size. */
  giveBackLast(size: number, count: number): void {
    const last = new Set<ReservedInstant>()
    for (let index = this.#instants.length - 1; last.size < count; index--) {
      const instant = this.#instants[index]!
      if (instant.left === size) last.add(instant)
    }
    this.giveBackWhere(instant => last.has(instant))
  }

  /** Returns the permits of all matching reserved instants. */
  giveBackWhere(isMeant: (instant: ReservedInstant) => boolean): void {
    const all = this.#instants.slice(this.#used)
    this.#instants = all.filter(instant => !isMeant(instant))
    this.#used = 0
    this.giveBack(all.filter(isMeant).map(returned))
  }

  /** Returns permits that can't be used, or are available sooner, according to a reply. */
  giveBackUseless({ now, pausedUntil, fadesAt }: Reserved, decided: Decided): void {
    if (pausedUntil > now) {
      const until = decided.latest + (pausedUntil - now)
      this.giveBackWhere(({ from }) => from < until)
    }
    // Permits for later instants are available sooner when these limits have ended. All processes return them before,
    // so none comes after another when they request them again.
    if (fadesAt < Infinity) this.giveBackWhere(({ opensAt }) => opensAt > fadesAt)
  }

  /** The permits to return with a call, the latest first: only in that order can even spacing take back all of them. */
  takeReturns(): readonly ReturnedPermits[] {
    const returns = this.#returns
    this.#returns = []
    return returns.sort((one, other) => other.at - one.at)
  }

  #dropFirst(): void {
    if (++this.#used < MAX_USED || 2 * this.#used < this.#instants.length) return
    this.#instants = this.#instants.slice(this.#used)
    this.#used = 0
  }
}
