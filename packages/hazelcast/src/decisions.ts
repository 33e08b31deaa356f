import { StateMachine, type AnyEffect, type Clock, type SessionInfo } from 'signalbox/engine'
import type { KeyEntries } from './key-entries.js'
import type { OpenEntry } from './open-entry.js'

/** Decides something about a key. It may run several times, so it has no other effects. */
export type Decide<T> = (state: OpenEntry, machine: StateMachine, now: number) => T

/** Receives the hints of a decision that is saved. @param text the saved entry. */
export type Notify = (effects: readonly AnyEffect[], text: string | undefined) => void

export interface DecisionTerms<T> {
  /** The longest lease that may be granted, in milliseconds. */
  readonly lease?: number
  /** The processes of sessions, if they are reported. */
  readonly sessions?: ReadonlyMap<string, SessionInfo>
  /** Receives the outcome of each try before it is saved. */
  readonly tried?: (outcome: T) => void
  /** Whether a decision with this outcome can wait for the changes of other boxes. */
  readonly canWait?: (outcome: T) => boolean
  /** A request that needs no hint, because the decision is about it. */
  readonly about?: string
}

/** An entry keeps a commit that is applied to all keys for this long, unless it changes earlier, in milliseconds. */
const FORGET_WITHIN = 200

/** Decides about keys, and sends the hints of each decision once it is saved. */
export class Decisions {
  /** Called with the key of an entry that has commits of sets to be written to their other keys. */
  decidedAt: (key: string) => void = () => undefined
  readonly entries: KeyEntries
  /** The commits that are applied to all keys, by the key of the entry that keeps them. */
  readonly #applied = new Map<string, Set<string>>()
  /** Functions that end the waits for other changes. */
  readonly #forgetting = new Set<() => void>()
  #isOver = false
  readonly #clock: Clock
  readonly #notify: Notify

  constructor(entries: KeyEntries, clock: Clock, notify: Notify) {
    this.entries = entries
    this.#clock = clock
    this.#notify = notify
  }

  /** Decides about a key. Rejects as `Engine.submit` does. */
  async at<T>(key: string, decide: Decide<T>, terms: DecisionTerms<T> = {}): Promise<T> {
    let effects: AnyEffect[] = []
    const outcome = await this.entries.change(key, {
      ...terms,
      run: state => {
        effects = []
        for (const id of this.#applied.get(key) ?? []) state.applied(id)
        const machine = new StateMachine(state, effect => {
          if (effect.type === 'changed' || effect.id !== terms.about) effects.push(effect)
        })
        return decide(state, machine, this.#clock.now())
      },
    })
    const known = this.entries.known(key)
    if (effects.length > 0) this.#notify(effects, known?.text)
    if (known?.entry.locks.decided.length) this.decidedAt(key)
    return outcome
  }

  /**
   * Lets an entry forget a commit that is applied to all keys, along with its next change if one comes soon. Rejects as
   * `Engine.submit` does.
   */
  async forget(key: string, id: string): Promise<void> {
    const applied = this.#applied.get(key) ?? new Set<string>()
    this.#applied.set(key, applied.add(id))
    try {
      await this.#soon()
      const certain = this.entries.certain(key)
      if (!certain || certain.entry.locks.decided.some(each => each.id === id)) await this.look(key)
    } finally {
      applied.delete(id)
      if (applied.size === 0) this.#applied.delete(key)
    }
  }

  /** Stops waiting for other changes. */
  end(): void {
    this.#isOver = true
    for (const forget of this.#forgetting) forget()
  }

  #soon(): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    return new Promise(resolve => {
      const forget = (): void => {
        timer.cancel()
        this.#forgetting.delete(forget)
        resolve()
      }
      const timer = this.#clock.after(FORGET_WITHIN, forget, false)
      this.#forgetting.add(forget)
    })
  }

  /** Reads the newest entry of a key. Rejects as `Engine.submit` does. */
  async look(key: string): Promise<void> {
    await this.at(key, () => undefined)
  }
}
