import { getOrInsert } from '../get-or-insert.js'

export class Traffic {
  readonly #messages = new Map<string, number>()
  readonly #transitions = new Map<string, Map<string, number>>()

  /** Counts a message at a place. `before` is the place where its train was. */
  note(place: string, before: string | undefined): void {
    this.#messages.set(place, (this.#messages.get(place) ?? 0) + 1)
    if (before === undefined || before === place) return
    this.#countTransition(before, place)
    this.#countTransition(place, before)
  }

  busiest(most: number): ReadonlyMap<string, number> {
    const places = [...this.#messages].sort(([, a], [, b]) => b - a)
    return new Map(places.slice(0, most))
  }

  transitions(place: string): ReadonlyMap<string, number> {
    return this.#transitions.get(place) ?? NONE
  }

  decay(): void {
    halve(this.#messages)
    for (const [place, others] of this.#transitions) {
      halve(others)
      if (others.size === 0) this.#transitions.delete(place)
    }
  }

  #countTransition(from: string, to: string): void {
    const others = getOrInsert(this.#transitions, from, noCounts)
    others.set(to, (others.get(to) ?? 0) + 1)
  }
}

const NONE: ReadonlyMap<string, number> = new Map()

function noCounts(): Map<string, number> {
  return new Map()
}

function halve(counts: Map<string, number>): void {
  for (const [key, count] of counts) {
    if (count > 1) counts.set(key, count / 2)
    else counts.delete(key)
  }
}
