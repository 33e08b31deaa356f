import type { Rejection } from './source.js'

/** How many rejected lines are kept for the report. */
const KEPT = 10

/** Counts the lines that could not be used, and keeps the first of them. */
export class Rejections {
  readonly #first: Rejection[] = []
  #count = 0

  add(rejection: Rejection): void {
    this.#count++
    if (this.#first.length < KEPT) this.#first.push(rejection)
  }

  get count(): number {
    return this.#count
  }

  /** The first ten. */
  get first(): readonly Rejection[] {
    return this.#first
  }
}
