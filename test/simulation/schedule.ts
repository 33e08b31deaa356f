import type { Claim } from '../../src/engine/claim.js'
import type { Action, NestedLock } from './action.js'
import { drawClimate, type Climate } from './climate.js'
import { Random } from './random.js'

/** The planned actions of a run, and their climate. */
export interface Schedule {
  readonly climate: Climate
  /** The actions in order of time. */
  readonly actions: readonly Action[]
}

export const KEYS = ['a', 'b', 'c', 'd'] as const
const ACTIONS = 200
const PERMITS = 3

/** Name of the store that commits transactions one by one, and of the store whose transactions share a commit. */
export const SINGLE = 'single'
export const GROUPED = 'grouped'

export function drawSchedule(seed: number): Schedule {
  const random = new Random('schedule', seed)
  const climate = drawClimate(seed, random)
  const draw = new Draw(random, climate)
  let at = 0
  const actions = Array.from({ length: ACTIONS }, () => {
    at += random.exponential(climate.pace)
    return draw.action(at)
  })
  return { climate, actions }
}

class Draw {
  readonly #random: Random
  readonly #climate: Climate
  /** The keys to draw from. Repeated keys are drawn more often. */
  readonly #keys: readonly string[]
  /** The lock modes to draw from: mixed, or a single one, which makes longer queues of equal callers. */
  readonly #modes: readonly Claim['mode'][]
  readonly #changes: { store: string; keys: readonly string[]; id: string }[] = []

  constructor(random: Random, climate: Climate) {
    this.#random = random
    this.#climate = climate
    this.#keys = random.chance(0.3) ? ['a', 'a', 'a', 'b', 'c', 'd'] : KEYS
    this.#modes = random.pick([
      ['exclusive', 'exclusive', 'exclusive', 'shared', 'permits'],
      ['exclusive'],
      ['exclusive', 'shared'],
      ['permits', 'permits', 'exclusive'],
    ] as const)
  }

  action(at: number): Action {
    const random = this.#random
    const planned = { at, place: random.below(this.#climate.processes) }
    const dice = random.next()
    if (dice < 0.55) return this.#lock(planned)
    if (dice < 0.75) return this.#transaction(planned)
    if (dice < 0.76)
      return { kind: 'watch', ...planned, store: random.pick([SINGLE, GROUPED]), key: random.pick(KEYS) }
    if (dice < 0.8) {
      const store = random.pick([SINGLE, GROUPED])
      return { kind: 'write', ...planned, store, key: random.pick(KEYS), pause: this.#pause() }
    }
    if (dice < 0.83) return { kind: 'close', ...planned, drain: this.#maybe(200), pause: this.#pause() }
    if (this.#climate.kind === 'calm') return this.#lock(planned)
    if (dice < 0.86) return { kind: 'force', ...planned, pause: this.#pause(), seed: random.below(1e6) }
    if (dice < 0.87) return { kind: 'revoke', ...planned, other: random.below(this.#climate.processes) }
    if (dice < 0.88) return { kind: 'expel', ...planned, pause: this.#pause() }
    if (dice < 0.91) return { kind: 'repeat', ...planned, seed: random.below(1e6) }
    if (dice < 0.95) {
      const duration = random.exponential(random.pick([20, 500, 3000]))
      return { kind: 'freeze', ...planned, duration, timersFirst: random.chance(0.5) }
    }
    if (this.#climate.kind === 'direct') return this.#lock(planned)
    if (dice < 0.98) {
      return {
        kind: 'crash',
        ...planned,
        pause: this.#pause(),
        severed: random.chance(0.5),
        revoked: random.chance(0.3),
      }
    }
    return { kind: 'cut', ...planned, duration: random.exponential(1000) }
  }

  #lock(planned: { at: number; place: number }): Action {
    const random = this.#random
    const verb = random.pick(['tryAcquire', 'acquire', 'acquire', 'acquire', 'run'] as const)
    const claims = this.#claims()
    const renew = random.chance(0.85)
    const wait = verb === 'tryAcquire' ? undefined : this.#wait()
    const lease = random.pick(this.#climate.leases)
    // A grant that is never released blocks all others for its lease.
    const forgets = verb !== 'run' && !renew && this.#climate.kind === 'rough' && lease <= 1000
    const writes = claims.length === 1 && claims[0]!.mode === 'exclusive'
    const ending = random.pick([
      'release',
      'release',
      'release',
      'release twice',
      forgets ? 'forget' : 'release',
      writes ? 'downgrade' : 'release',
    ] as const)
    return {
      kind: 'lock',
      ...planned,
      verb,
      callers: random.chance(0.2) ? 2 + random.below(4) : 1,
      claims,
      wait,
      lease,
      renew,
      label: random.chance(0.2) ? 'labelled' : undefined,
      abortAfter: verb === 'tryAcquire' || wait === 0 ? undefined : this.#maybe(100),
      steps: Array.from({ length: random.below(4) }, () => this.#pause()),
      watchesSignal: random.chance(0.2),
      ending,
      nested: verb === 'run' && random.chance(0.3) ? this.#nested(claims) : undefined,
    }
  }

  /**
   * Draws another lock, or the same one again. Nested locks can block each other forever, so they wait for a limited
   * time.
   */
  #nested(outer: readonly Claim[]): NestedLock {
    const random = this.#random
    const claims = random.chance(0.3) ? outer : this.#claims()
    return { claims, wait: random.between(0, 100), reentrant: random.chance(0.5) }
  }

  #claims(): Claim[] {
    const random = this.#random
    const count = random.pick([1, 1, 1, 2, 3])
    const keys = new Set(Array.from({ length: count }, () => random.pick(this.#keys)))
    return [...keys].map(key => {
      const mode = random.pick(this.#modes)
      if (mode !== 'permits') return { key, mode }
      // A different maximum from that of the other claims is rejected while the key is in use.
      const max = random.chance(0.02) ? PERMITS + 1 : PERMITS
      return { key, mode, permits: 1 + random.below(PERMITS), max }
    })
  }

  #transaction(planned: { at: number; place: number }): Action {
    const random = this.#random
    const wait = this.#wait()
    const earlier = this.#changes.length > 0 && random.chance(0.3) ? random.pick(this.#changes) : undefined
    const store = earlier?.store ?? random.pick([SINGLE, GROUPED])
    const keys = earlier?.keys ?? random.sample(KEYS, random.pick([1, 1, 2, 3]))
    // In a batch, one transaction may delete a list that the next one creates again. That would look like a lost mark.
    const deleting = store === SINGLE ? 'deleting' : 'plain'
    const variant = random.pick(['plain', 'plain', 'plain', 'moving', 'failing', deleting] as const)
    const id = earlier?.id ?? (random.chance(0.8) ? `c${this.#changes.length}` : undefined)
    if (id !== undefined && !earlier) this.#changes.push({ store, keys, id })
    return {
      kind: 'transaction',
      ...planned,
      store,
      keys,
      callers: random.chance(0.4) ? 2 + random.below(4) : 1,
      twins: random.chance(0.2),
      id,
      wait,
      lease: random.pick(this.#climate.leases),
      abortAfter: wait === 0 ? undefined : this.#maybe(100),
      pause: random.chance(0.5) ? 0 : this.#pause(),
      variant,
    }
  }

  #wait(): number | undefined {
    const random = this.#random
    return random.chance(0.5) ? undefined : random.pick([0, 10, 100, 1000, random.between(1, 5000)])
  }

  #pause(): number {
    const random = this.#random
    return random.chance(0.3) ? random.between(0, 0.5) : random.between(0, this.#climate.work)
  }

  /** Rarely returns a time of up to `most` milliseconds, and mostly undefined. */
  #maybe(most: number): number | undefined {
    return this.#random.chance(0.15) ? this.#random.between(0, most) : undefined
  }
}
