import type { Cost } from './cost.js'
import type { WindowDefinition } from './definition.js'
import type { LimitReport } from './window.js'

/** Reserves permits of one limiter ahead of their use, for all waiters of a process, and returns unused ones. */
export interface ReservePermits {
  readonly limiter: string
  /** The session of the process. */
  readonly session: string
  /** The limits that the process uses. All of them apply together. None for an operator, who reserves no permits. */
  readonly windows: readonly WindowDefinition[]
  /** The units in which costs have amounts, besides calls; left out for none. */
  readonly measures?: readonly string[] | undefined
  /** In the order in which they are served. */
  readonly units: readonly Unit[]
  /**
   * The tenants whose callers wait in this process; left out if none has a tenant. Processes share the permits by the
   * weights of the tenants that wait in them.
   */
  readonly tenants?: readonly WaitingTenant[] | undefined
  /** Maximum time ahead for a reservation, in milliseconds. If it is too short for a unit, no later unit gets any. */
  readonly horizon: number
  /** Minimum time for which each permit must be usable, in milliseconds. The limits may require a longer one. */
  readonly hold: number
  /** Permits that were reserved and not used, those of the latest instant first. */
  readonly returns: readonly ReturnedPermits[]
  /** Amounts that calls have used in addition to their costs. They count from now on, even beyond a limit. */
  readonly overdrawn?: readonly number[] | undefined
  /**
   * Time for which no process gets a permit from now on, in milliseconds. 0 ends a pause; undefined changes nothing.
   */
  readonly pause: number | undefined
  /** The permits to explain, and those ahead of them; undefined for no explanation. */
  readonly explain: Explain | undefined
}

/** A tenant, or a group of tenants, with callers that wait in a process. */
export interface WaitingTenant {
  /** The same in all processes, perhaps shortened. Empty for the callers of a process that have no tenant. */
  readonly name: string
  readonly weight: number
}

/** Permits to explain. */
export interface Explain extends Cost {
  /** Number of permits ahead of them, and their amounts. */
  readonly ahead: number
  readonly amountsAhead?: readonly number[] | undefined
}

/** Permits that are requested for one instant. */
export interface Unit extends Cost {
  /** Maximum number of further permits, if the same instant has them. */
  readonly more: number
  /** Maximum time until a useful instant, in milliseconds. */
  readonly within: number
}

/** Permits of one instant. */
export interface InstantPermits {
  readonly n: number
  /** The instant, as the engine reported it. */
  readonly at: number
}

/** Permits that were reserved and not used, or amounts that their calls have not used. */
export interface ReturnedPermits extends InstantPermits, Cost {
  /** From when they could be used: the instant, or earlier. */
  readonly from: number
}

/** The answer. All times are by the engine's clock. */
export interface Reserved {
  /** The time of the decision. */
  readonly now: number
  /**
   * For each unit, the number of reserved permits, and their instant; or 0, and when they could be used. If the
   * requested hold exceeds `hold`, permits can be used that much before their instant.
   */
  readonly units: readonly InstantPermits[]
  /** Time from its instant for which each permit can be used, in milliseconds. */
  readonly hold: number
  /** The end of the pause; before `now` if there is none. */
  readonly pausedUntil: number
  /**
   * When limits that only other processes use end, if none uses them again. Until then they apply, and nothing is
   * reserved beyond that time. Infinity if there are none.
   */
  readonly fadesAt: number
  /**
   * Number of processes, including this one, that had to wait for a permit in the last seconds; 0 if this one gets all
   * its permits at once. With tenants, the weights of all tenants that wait, in relation to the part of them that this
   * process has. If a tenant waits in several processes, each has an equal part of its weight.
   */
  readonly contenders: number
  /**
   * For each of the tenants in the request, the number of processes in which it waits; undefined without tenants, and if
   * this process need not wait.
   */
  readonly processes?: readonly number[] | undefined
  readonly explained: Explained | undefined
}

/** The state of the limits for a caller. */
export interface Explained {
  /** The time at which all limits admit it. */
  readonly ready: number
  /** The index of the limit that delays the caller the longest; undefined if none does. */
  readonly binding: number | undefined
  readonly reports: readonly LimitReport[]
}
