import type { Claim } from '../../src/engine/claim.js'
import type { Grant } from '../../src/core/grant.js'
import { longestDelay, type Climate } from './climate.js'
import type { History } from './history.js'
import type { Observed, ObservedTable } from './observed-table.js'
import { textOf, type SimulatedProcess } from './process.js'
import type { Timeline } from './timeline.js'

/** A grant that a caller has. */
export interface Holder {
  readonly process: SimulatedProcess
  readonly grant: Grant
  /** The requested claims; shared ones once it is downgraded. */
  claims: readonly Claim[]
  readonly renew: boolean
  readonly lease: number
  released: boolean
  /** When it last passed `assertHeld`, in common time. */
  heldAt: number
}

/** Times are fractions: two that are meant to be equal may differ by so much. */
const TINY = 1e-6

/** Limits of turns that a box may pass on locally while others may wait: their number, and milliseconds. */
const MAX_TURNS = 16
const MAX_TURNS_TIME = 5
/** The part of a lease within which a renewal has to come back, and what timers may add, in milliseconds. */
const RENEWABLE = 1 / 2
const SLACK = 5

/** Checks what callers are given: that it excludes, rises, ends in time, and is not lost without a reason. */
export class GrantWatch {
  readonly #timeline: Timeline
  readonly #history: History
  readonly #table: ObservedTable
  readonly #climate: Climate
  #holders: Holder[] = []
  /** The greatest token of each key under which `assertHeld` has passed. */
  readonly #passed = new Map<string, bigint>()
  /** When the first turn of a number was given. */
  readonly #firstTurns = new Map<number, number>()

  constructor(timeline: Timeline, history: History, table: ObservedTable, climate: Climate) {
    this.#timeline = timeline
    this.#history = history
    this.#table = table
    this.#climate = climate
  }

  /** A caller gets a grant. */
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

  /** A grant goes through few turns and for a short time only; in one thread while no other request waits. */
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

  /** The server grants a request: no holder of a conflicting grant may count on it any more. */
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

  /** A caller asserts that it holds; false when that throws. */
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

  /** A caller finds its grant lost; one that is renewed by a healthy process over a healthy network is not. */
  lost({ process, grant, renew, lease, heldAt }: Holder): void {
    const number = Number(grant.token / 1024n)
    const record = this.#table.grants.get(number)
    if (!renew || !record || record.overridden || !process.open) return
    if (process.troubledUntil > heldAt - lease) return
    if (lease * RENEWABLE < 2 * longestDelay(this.#climate) + SLACK) return
    this.#history.violate('P9', `${process.name} lost ${number - this.#history.origin} without a reason`)
  }

  /** Whether a claim can't be granted together with a holder: with permits, with it and all others who pass. */
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
