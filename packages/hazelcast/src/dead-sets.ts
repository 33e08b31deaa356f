import type { Clock, Timer } from 'signalbox/engine'
import type { Decisions } from './decisions.js'
import type { Decided, KeyChange } from './key-entry.js'
import type { Pointer } from './open-entry.js'

/** Time after which a set is ended if a key refers to it but its home lacks it, in milliseconds. */
const MISSING_FOR = 3000
/** Age in milliseconds from which any box that finds a commit at its home writes it to the other keys. */
const HELP_AFTER = 2000
/** A set that was missing once is remembered for this long, in milliseconds. */
const FORGOTTEN_AFTER = 4 * MISSING_FOR
/** Minimum time between two look-ups of the sets that hold a key, in milliseconds. */
const INTERVAL = 500

/** The state of a set at its home. */
type AtHome =
  | { readonly state: 'alive' }
  | { readonly state: 'missing' }
  | { readonly state: 'ended'; readonly number: number }
  | { readonly state: 'decided'; readonly number: number; readonly change: KeyChange }

/**
 * Frees keys that refer to sets that no longer exist, because the box of such a set has died in the middle of a step.
 * A set is removed from a key only when it can never be granted again: it is committed, or its home refuses it.
 */
export class DeadSets {
  readonly #decisions: Decisions
  readonly #clock: Clock
  /** The clock time at which a set was first missing at its home, by the set and the change with which it came. */
  readonly #missing = new Map<string, number>()
  /** The clock time at which each key was last checked. */
  readonly #looked = new Map<string, number>()

  /** The homes that this box checks again, because they have commits. */
  readonly #helping = new Map<string, Timer>()
  /** The commits that are being written or forgotten. */
  readonly #underway = new Set<Promise<unknown>>()
  #isOver = false

  constructor(decisions: Decisions, clock: Clock) {
    this.#decisions = decisions
    this.#clock = clock
    decisions.decidedAt = home => this.#helpLater(home)
  }

  /** Settles when all commits of this box are written, and forgotten by their homes. */
  async settled(): Promise<void> {
    while (this.#underway.size > 0) await Promise.allSettled(this.#underway)
  }

  /** Stops helping other boxes. */
  end(): void {
    this.#isOver = true
    for (const timer of this.#helping.values()) timer.cancel()
  }

  /** Writes all commits of a home to their other keys. Rejects as `Engine.submit` does. */
  async finish(home: string): Promise<void> {
    const all = await this.#decisions.at(home, state => state.decided)
    await Promise.all(all.map(each => this.apply(home, each)))
  }

  /** Writes the commit of a set to its other keys. Then its home forgets it. Rejects as `Engine.submit` does. */
  async apply(home: string, { id, number, changes }: Decided): Promise<void> {
    const writing = Promise.all(
      changes.map(change =>
        this.#decisions.at(change.key, (state, machine, now) => {
          const part = state.part(id)
          // mutant: apply-without-pointer
          if (!part) return
          state.apply(change)
          // mutant: number-not-raised
          state.raiseNumber(number)
          machine.decide({ type: 'cancel', request: part }, now)
        }),
      ),
    )
    await this.#tracked(writing)
    // If this fails, a box that finds the commit does it.
    this.#tracked(this.#decisions.forget(home, id)).catch(() => undefined)
  }

  #tracked<T>(work: Promise<T>): Promise<T> {
    this.#underway.add(work)
    const over = (): void => void this.#underway.delete(work)
    work.then(over, over)
    return work
  }

  #helpLater(home: string): void {
    if (this.#isOver || this.#helping.has(home)) return
    const help = (): void => {
      this.#helping.delete(home)
      if (this.#decisions.entries.known(home)?.entry.locks.decided.length === 0) return
      // If it fails, or there are others, the home is checked again.
      this.finish(home).catch(() => this.#helpLater(home))
    }
    this.#helping.set(home, this.#clock.after(HELP_AFTER, help, false))
  }

  /** Starts looking up the sets that hold a key. */
  look(key: string): void {
    const now = this.#clock.now()
    if ((this.#looked.get(key) ?? -Infinity) > now - INTERVAL) return
    for (const [other, at] of this.#looked) if (at <= now - INTERVAL) this.#looked.delete(other)
    this.#looked.set(key, now)
    this.free(key).catch(() => undefined)
  }

  /**
   * Frees a key from the sets that no longer exist. Returns whether some sets are still in doubt. Rejects as
   * `Engine.submit` does. @param dead the sessions whose boxes are certainly dead.
   */
  async free(key: string, dead?: ReadonlySet<string>): Promise<boolean> {
    const pointers = await this.#decisions.at(key, state => state.pointers())
    const unknown = await Promise.all(
      pointers.map(pointer => this.#free(key, pointer, dead?.has(pointer.session) ?? false)),
    )
    return unknown.includes(true)
  }

  /** Forgets the sets that were missing before this clock time, because they were not checked again. */
  #forgetMissing(before: number): void {
    for (const [seen, since] of this.#missing) {
      if (since > before) return
      this.#missing.delete(seen)
    }
  }

  async #free(key: string, pointer: Pointer, isDead: boolean): Promise<boolean> {
    const { id, home, since: came } = pointer
    const seen = `${id} ${came}`
    const found = await this.#decisions.at(home, (state, machine, now): AtHome => {
      const decided = state.decided.find(each => each.id === id)
      const change = decided?.changes.find(each => each.key === key)
      // The number of a home is at least that of each of its sets.
      const { number } = state
      if (change) return { state: 'decided', number, change }
      const part = state.part(id)
      if (part && now >= part.expires) machine.decide({ type: 'cancel', request: part }, now)
      else if (part) return { state: 'alive' }
      if (state.hasEnded(id)) return { state: 'ended', number: state.number }
      const since = this.#missing.get(seen) ?? now
      if (now - since < MISSING_FOR && !isDead) {
        this.#forgetMissing(now - FORGOTTEN_AFTER)
        this.#missing.set(seen, since)
        return { state: 'missing' }
      }
      // mutant: no-kill-mark
      state.end(id)
      return { state: 'ended', number }
    })
    if (found.state === 'missing') return true
    this.#missing.delete(seen)
    if (found.state === 'alive') return false
    await this.#decisions.at(key, (state, machine, now) => {
      if (!state.hasPointer(pointer)) return
      if (found.state === 'decided') state.apply(found.change)
      state.raiseNumber(found.number)
      machine.decide({ type: 'cancel', request: state.part(id)! }, now)
    })
    return false
  }
}
