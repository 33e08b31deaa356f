import type { ReturnedPermits } from '../rules/reserve.js'

/** Permits that were reserved for this process, for use within a stretch of its clock. */
export interface ReservedInstant {
  /** How many of them are left. */
  left: number
  /** The instant, by the engine's clock. */
  readonly at: number
  /** From when on they can be used, by the engine's clock. */
  readonly opensAt: number
  /** The earliest clock time at which that can be. */
  readonly earliest: number
  /** Clock times, both included. */
  readonly from: number
  readonly until: number
}

/** What is given back of a reserved instant. */
export function returned({ left, at, opensAt }: ReservedInstant): ReturnedPermits {
  return { n: left, at, from: opensAt }
}

/** At most about so many used entries are left at the front. */
const MOST_USED = 64

/** The permits that are reserved for a process and not used yet, in the order of their instants. */
export class ReservedPermits {
  #shares: ReservedInstant[] = []
  /** How many at the front are used up. */
  #used = 0

  get first(): ReservedInstant | undefined {
    return this.#shares[this.#used]
  }

  /** How many permits there are. */
  get permits(): number {
    let permits = 0
    for (let index = this.#used; index < this.#shares.length; index++) permits += this.#shares[index]!.left
    return permits
  }

  /** How many of them can be used now. @param now clock time. */
  openPermits(now: number): number {
    let permits = 0
    for (let index = this.#used; index < this.#shares.length; index++) {
      const { left, from } = this.#shares[index]!
      if (from <= now) permits += left
    }
    return permits
  }

  /** The reserved instant that is latest. */
  get last(): ReservedInstant | undefined {
    return this.first && this.#shares.at(-1)
  }

  add(share: ReservedInstant): void {
    const shares = this.#shares
    if (share.at >= (this.last?.at ?? -Infinity)) {
      shares.push(share)
      return
    }
    let place = shares.length
    while (place > this.#used && shares[place - 1]!.at > share.at) place--
    shares.splice(place, 0, share)
  }

  /** Takes permits from the first reserved instant, which has to have as many. */
  take(n: number): ReservedInstant {
    const share = this.first!
    share.left -= n
    if (share.left === 0) this.dropFirst()
    return share
  }

  dropFirst(): void {
    if (++this.#used < MOST_USED || 2 * this.#used < this.#shares.length) return
    this.#shares = this.#shares.slice(this.#used)
    this.#used = 0
  }

  /** How many reserved instants there are of each size. */
  sizes(): Map<number, number> {
    const sizes = new Map<number, number>()
    for (let index = this.#used; index < this.#shares.length; index++) {
      const { left } = this.#shares[index]!
      sizes.set(left, (sizes.get(left) ?? 0) + 1)
    }
    return sizes
  }

  /** The last reserved instant of each size. */
  lastOfSizes(): Map<number, ReservedInstant> {
    const last = new Map<number, ReservedInstant>()
    for (let index = this.#used; index < this.#shares.length; index++) {
      last.set(this.#shares[index]!.left, this.#shares[index]!)
    }
    return last
  }

  /** Removes the last `count` reserved instants of a size. */
  dropLast(size: number, count: number): ReturnedPermits[] {
    const dropped = new Set<ReservedInstant>()
    for (let index = this.#shares.length - 1; dropped.size < count; index--) {
      const share = this.#shares[index]!
      if (share.left === size) dropped.add(share)
    }
    return this.dropWhere(share => dropped.has(share))
  }

  /** Removes all reserved instants of a kind. */
  dropWhere(isMeant: (share: ReservedInstant) => boolean): ReturnedPermits[] {
    const all = this.#shares.slice(this.#used)
    this.#shares = all.filter(share => !isMeant(share))
    this.#used = 0
    return all.filter(isMeant).map(returned)
  }
}
