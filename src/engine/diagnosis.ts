import type { PromiseId } from '../guarantees.js'

/** Something that weakens a promise, or keeps the engine from being used. */
export interface Finding {
  /** A short name that stays the same. */
  readonly id: string
  /** The promises that are weakened; none when it is only about whether the engine can be used. */
  readonly promises: readonly PromiseId[]
  /** What is so, and what can happen. */
  readonly how: string
  readonly mend: string
}

/** What was looked at and what was found. */
export interface Diagnosis {
  /** What is true of the engine, for a person: versions, times, what could not be looked at. */
  readonly facts: readonly string[]
  readonly findings: readonly Finding[]
}
