import { getOrInsert } from '../get-or-insert.js'

/** How much happens at places, and how much goes on between them. */
export class Traffic {
  readonly #messages = new Map<string, number>()
  readonly #passages = new Map<string, Map<string, number>>()

  /** Notes a message that happens at a place, and where its train was before. */
  note(place: string, before: string | undefined): void {
    this.#messages.set(place, (this.#messages.get(place) ?? 0) + 1)
    if (before === undefined || before === place) return
    this.#pass(before, place)
    this.#pass(place, before)
  }

  /** The places with the most messages, and how many those are. */
  busiest(most: number): ReadonlyMap<string, number> {
    const places = [...this.#messages].sort(([, a], [, b]) => b - a)
    return new Map(places.slice(0, most))
  }

  /** How often trains went from or to other places, by these. */
  passages(place: string): ReadonlyMap<string, number> {
    return this.#passages.get(place) ?? NONE
  }

  /** Lets what was noted count half, and forgets what comes to nothing. */
  fade(): void {
    halve(this.#messages)
    for (const [place, others] of this.#passages) {
      halve(others)
      if (others.size === 0) this.#passages.delete(place)
    }
  }

  #pass(from: string, to: string): void {
    const others = getOrInsert(this.#passages, from, noCounts)
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
