import type { Claim } from '../../src/engine/claim.js'
import type { Grant } from '../../src/core/grant.js'
import { longestDelay, type Climate } from './climate.js'
import type { History } from './history.js'
import type { Observed, ObservedTable } from './observed-table.js'
import { textOf, type SimulatedProcess } from './process.js'
import type { Timeline } from './timeline.js'

/** A grant, as its caller holds it. */
export interface Holder {
  readonly process: SimulatedProcess
  readonly grant: Grant
  /** The requested claims; shared ones after a downgrade. */
  claims: readonly Claim[]
  readonly renew: boolean
  readonly lease: number
  released: boolean
  /** Time of the last successful `assertHeld`, in common time. */
  heldAt: number
}

/** Tolerance for the comparison of times, which are fractions, in milliseconds. */
const TINY = 1e-6

/**
 * Limits of turns that a box may pass on locally while others may wait: their number, and their time in milliseconds.
 */
const MAX_TURNS = 16
const MAX_TURNS_TIME = 5
/**
 * The fraction of a lease within which a renewal must complete, and the additional delay by timers, in milliseconds.
 */
const RENEWABLE = 1 / 2
const SLACK = 5

/**
 * Checks the grants of callers: they exclude each other, tokens increase, grants end in time, and none is lost without
 * a reason.
 */
export class GrantWatch {
  readonly #timeline: Timeline
  readonly #history: History
  readonly #table: ObservedTable
  readonly #climate: Climate
  #holders: Holder[] = []
  /** By key: the greatest token of an exclusive grant whose `assertHeld` has succeeded. */
  readonly #passed = new Map<string, bigint>()
  /** By number: the time of its first turn. */
  readonly #firstTurns = new Map<number, number>()

  constructor(timeline: Timeline, history: History, table: ObservedTable, climate: Climate) {
    this.#timeline = timeline
    this.#history = history
    this.#table = table
    this.#climate = climate
  }

  /** Records a grant of a caller, and checks it. */
  given(holder: Holder): void {
    const { process, grant, claims } = holder
    this.#history.note(process.name, 'is given', {
      token: grant.token,
      keys: grant.keys,
      for: grant.expiresIn(),
    })
    const keys = claims.map(({ key }) => key).sort()
    if (grant.keys.join() !== keys.join())
      this.#history.violate('P6', `${process.name} asked for ${keys.join()} and got ${grant.keys.join()}`)
    if (grant.expiresIn() <= 0) this.#history.violate('P3', `${process.name} is given a grant that is over`)
    for (const other of this.#holders) {
      const isReader = claims.every(({ mode }) => mode === 'shared')
      if (numberOf(other) === numberOf(holder) && !isReader && !other.released && passes(other))
        this.#history.violate('P1', `two callers of ${process.name} have one grant at the same time`)
    }
    this.#holders = this.#holders.filter(other => passes(other))
    this.#holders.push(holder)
    this.#check(holder)
    this.#checkTurn(holder)
  }

  /**
   * Checks that a grant has few turns, within a short time. In one thread, that applies only while another request
   * waits.
   */
  #checkTurn(holder: Holder): void {
    const number = numberOf(holder)
    const turn = Number(holder.grant.token % 1024n)
    const record = this.#table.grants.get(number)
    const time = this.#timeline.now - (this.#firstTurns.get(number) ?? this.#timeline.now)
    if (!this.#firstTurns.has(number)) this.#firstTurns.set(number, this.#timeline.now)
    if (!record || (this.#climate.kind === 'direct' && !this.#table.awaited(record.request))) return
    if (turn >= MAX_TURNS || time > MAX_TURNS_TIME + TINY)
      this.#history.violate('P4', `${this.#text(holder)} is handed on ${time} ms after its first turn`)
  }

  /** Checks, when the server grants a request, that no holder of a conflicting grant still counts on it. */
  granted(request: Observed): void {
    for (const holder of this.#holders) {
      if (!passes(holder) || this.#overridden(holder)) continue
      const number = numberOf(holder)
      if (number === request.number) continue
      const rival = request.claims.find(claim => this.#excluded(claim, holder, undefined))
      if (rival) {
        this.#history.violate(
          'P1',
          `${holder.process.name} still passes assertHeld with ${this.#text(holder)}, and ${request.id} is granted ${rival.key}`,
        )
      }
    }
  }

  /** Calls `assertHeld`, and checks the result. Returns false if it throws. */
  probe(holder: Holder): boolean {
    const { process, grant } = holder
    const sure = grant.expiresIn() > 0
    let held = true
    try {
      grant.assertHeld()
    } catch (error) {
      held = false
      if ((error as { code?: string }).code !== 'LOST')
        this.#history.violate('P10', `assertHeld throws ${textOf(error)}`)
    }
    this.#history.note(process.name, held ? 'holds' : 'has lost', {
      token: grant.token,
      for: grant.expiresIn(),
    })
    if (held !== sure)
      this.#history.violate('P3', `assertHeld of ${this.#text(holder)} says ${held} and expiresIn ${sure}`)
    if (held) {
      holder.heldAt = this.#timeline.now
      this.#check(holder)
    } else this.lost(holder)
    return held
  }

  #check(holder: Holder): void {
    const { process, grant, claims } = holder
    if (this.#overridden(holder)) return
    const expiry = this.#table.expiry(numberOf(holder))
    if (expiry === undefined) {
      this.#history.violate('P3', `${process.name} has ${this.#text(holder)}, which was never granted`)
      return
    }
    if (this.#timeline.now + grant.expiresIn() > expiry + TINY) {
      const late = this.#timeline.now + grant.expiresIn() - expiry
      this.#history.violate('P3', `${process.name} counts ${this.#text(holder)} as held ${late} ms too long`)
    }
    for (const other of this.#holders) {
      if (other === holder || !passes(other) || this.#overridden(other)) continue
      if (claims.some(claim => this.#excluded(claim, other, holder)))
        this.#history.violate('P1', `${this.#text(holder)} and ${this.#text(other)} both pass assertHeld`)
    }
    for (const { key, mode } of claims) {
      if (mode !== 'exclusive') continue
      const highest = this.#passed.get(key) ?? 0n
      if (grant.token < highest)
        this.#history.violate('P2', `${this.#text(holder)} passes assertHeld on ${key} after a later grant`)
      else this.#passed.set(key, grant.token)
    }
  }

  /** Checks a lost grant. A healthy process over a healthy network must not lose a grant that it renews. */
  lost({ process, grant, renew, lease, heldAt }: Holder): void {
    const number = Number(grant.token / 1024n)
    const record = this.#table.grants.get(number)
    if (!renew || !record || record.overridden || !process.open) return
    if (process.troubledUntil > heldAt - lease) return
    if (lease * RENEWABLE < 2 * longestDelay(this.#climate) + SLACK) return
    this.#history.violate('P9', `${process.name} lost ${number - this.#history.origin} without a reason`)
  }

  /** Whether a claim conflicts with a holder. Permits are added to those of all holders but `self`. */
  #excluded(claim: Claim, holder: Holder, self: Holder | undefined): boolean {
    const other = holder.claims.find(({ key }) => key === claim.key)
    if (!other) return false
    if (other.mode !== 'permits' || claim.mode !== 'permits')
      return other.mode !== 'shared' || claim.mode !== 'shared'
    let sum = claim.permits
    for (const one of this.#holders) {
      const held = one.claims.find(({ key }) => key === claim.key)
      if (one !== self && held?.mode === 'permits' && passes(one) && !this.#overridden(one))
        sum += held.permits
    }
    return sum > claim.max
  }

  #overridden(holder: Holder): boolean {
    return this.#table.grants.get(numberOf(holder))?.overridden ?? false
  }

  #text({ process, grant }: Holder): string {
    return `${process.name}:${numberOf({ grant }) - this.#history.origin}.${grant.token % 1024n}`
  }
}

function passes({ process, grant, released }: Holder): boolean {
  return !released && process.alive && grant.expiresIn() > TINY
}

function numberOf({ grant }: Pick<Holder, 'grant'>): number {
  return Number(grant.token / 1024n)
}
