import type { PermitReservation } from '../../engine/contract.js'
import type { Cost } from '../../engine/limits/cost.js'
import type { Reserved, ReturnedPermits } from '../../engine/limits/reservation.js'

/** Permits of one instant that are reserved for this process, and the times between which they can be used. */
export interface ReservedInstant {
  /** Number of remaining permits; with other units than calls, the share of the cost. */
  left: number
  /** The cost of the permits of the reply. With other units than calls, one caller gets all of them. */
  readonly cost: Cost
  /** The instant, by the engine's clock. */
  readonly engineAt: number
  /** The time from which they can be used, by the engine's clock. */
  readonly engineOpensAt: number
  /** The earliest possible clock time of that moment. */
  readonly earliest: number
  /** The clock times from which and until which they can be used, both included. */
  readonly from: number
  readonly until: number
}

/**
 * Returns the clock times of this process between which permits can be used.
 * @param left as in {@link ReservedInstant}.
 * @param asked the requested hold. If it exceeds the hold in the reply, permits can be used before their instant.
 * @param isForNow whether they can be used at once, although their instant may have been rounded up.
 */
export function reservedInstant(
  at: number,
  cost: Cost,
  left: number,
  { reserved, earliest, latest }: PermitReservation,
  asked: number,
  isForNow: boolean,
): ReservedInstant {
  const { now, hold } = reserved
  const opens = at - leadOf(reserved, asked)
  const engineOpensAt = isForNow ? Math.min(opens, now) : opens
  return {
    left,
    cost,
    engineAt: at,
    engineOpensAt,
    earliest: earliest + (engineOpensAt - now),
    from: latest + (engineOpensAt - now),
    until: earliest + (at - now) + hold,
  }
}

/** Returns the time before their instants from which permits can be used, for a requested hold, in milliseconds. */
function leadOf({ hold }: Reserved, asked: number): number {
  return Math.max(asked - hold, 0)
}

/** Converts the permits of a reserved instant to permits to return. */
export function returned({ engineAt, engineOpensAt, ...instant }: ReservedInstant): ReturnedPermits {
  return { ...costOf(instant), at: engineAt, from: engineOpensAt }
}

/** Returns the cost of the remaining permits. */
export function costOf({ left, cost }: Pick<ReservedInstant, 'left' | 'cost'>): Cost {
  return cost.amounts ? cost : { n: left }
}

/** Equal for equal costs only. */
export type Size = number | string

export function sizeOf({ n, amounts }: Cost): Size {
  return amounts ? `${n} ${amounts.join()}` : n
}

/**
 * The permits that are reserved for a process and not used yet, in the order of their instants, and those that the
 * process has yet to return.
 */
export class ReservedPermits {
  readonly all: ReservedInstant[] = []
  /** Number of reserved permits. */
  permits = 0
  /** Permits that the next call returns. */
  readonly owed: ReturnedPermits[] = []
  /** Amounts that calls have used in addition to their costs, which the next call reports. */
  #overdrawn: readonly number[] | undefined

  /** Whether the next call has something to report. */
  get isOwing(): boolean {
    return this.owed.length > 0 || this.#overdrawn !== undefined
  }

  get first(): ReservedInstant | undefined {
    return this.all[0]
  }

  /** Number of permits that can be used now. @param now clock time. */
  openPermits(now: number): number {
    return this.all.reduce((sum, { left, from }) => (from <= now ? sum + left : sum), 0)
  }

  /** The latest reserved instant. */
  get last(): ReservedInstant | undefined {
    return this.all.at(-1)
  }

  add(instant: ReservedInstant): void {
    let place = this.all.length
    while (place > 0 && this.all[place - 1]!.engineAt > instant.engineAt) place--
    this.all.splice(place, 0, instant)
    this.permits += instant.left
  }

  /** Takes permits from the first reserved instant, which must have enough. */
  take(cost: Cost): ReservedInstant {
    const instant = this.first!
    const n = cost.amounts ? instant.left : cost.n
    instant.left -= n
    this.permits -= n
    if (instant.left === 0) this.all.shift()
    return instant
  }

  /** Number of reserved instants of each size. */
  sizes(): Map<Size, number> {
    const sizes = new Map<Size, number>()
    for (const instant of this.all) {
      const size = sizeOf(costOf(instant))
      sizes.set(size, (sizes.get(size) ?? 0) + 1)
    }
    return sizes
  }

  /** The last reserved instant of each size. */
  lastOfSizes(): Map<Size, ReservedInstant> {
    return new Map(this.all.map(instant => [sizeOf(costOf(instant)), instant]))
  }

  /** Queues permits for return with the next call. */
  giveBack(permits: readonly ReturnedPermits[]): void {
    this.owed.push(...permits)
  }

  /** Queues amounts to report with the next call. */
  overdraw(amounts: readonly number[] | undefined): void {
    const before = this.#overdrawn
    this.#overdrawn = before ? before.map((amount, place) => amount + (amounts?.[place] ?? 0)) : amounts
  }

  takeOverdrawn(): readonly number[] | undefined {
    const amounts = this.#overdrawn
    this.#overdrawn = undefined
    return amounts
  }

  /** Queues the permits of a reply for return. @param units those of the request. @param asked the requested hold. */
  giveBackAll(reserved: Reserved, units: readonly Cost[], asked: number): void {
    for (const [index, { n, at }] of reserved.units.entries()) {
      const { amounts } = units[index]!
      if (n > 0) this.giveBack([{ n, amounts, at, from: at - leadOf(reserved, asked) }])
    }
  }

  /** Queues the permits of the first reserved instant for return. */
  giveBackFirst(): void {
    this.giveBack([returned(this.first!)])
    this.permits -= this.all.shift()!.left
  }

  /** Queues the permits of the last `count` reserved instants of a size for return. */
  giveBackLast(size: Size, count: number): void {
    const last = new Set(this.all.filter(instant => sizeOf(costOf(instant)) === size).slice(-count))
    this.giveBackWhere(instant => last.has(instant))
  }

  /** Queues the permits of all matching reserved instants for return. */
  giveBackWhere(isMeant: (instant: ReservedInstant) => boolean): void {
    for (const instant of this.all.splice(0)) {
      if (!isMeant(instant)) this.all.push(instant)
      else {
        this.giveBack([returned(instant)])
        this.permits -= instant.left
      }
    }
  }

  /** Queues permits for return that can't be used, or are available sooner, according to a reply. */
  giveBackUseless({ reserved, latest }: PermitReservation): void {
    const { now, pausedUntil, fadesAt } = reserved
    if (pausedUntil > now) {
      const until = latest + (pausedUntil - now)
      this.giveBackWhere(({ from }) => from < until)
    }
    // Permits for later instants are available sooner when these limits have ended. All processes return them before,
    // so none comes after another when they request them again.
    if (fadesAt < Infinity) this.giveBackWhere(({ engineOpensAt }) => engineOpensAt > fadesAt)
  }

  /**
   * Takes the permits to return with a call, the latest first: only in that order can even spacing take back all of
   * them.
   */
  takeReturns(): readonly ReturnedPermits[] {
    return this.owed.splice(0).sort((one, other) => other.at - one.at)
  }
}
