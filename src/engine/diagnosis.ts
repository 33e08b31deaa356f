import type { PromiseId } from '../guarantees.js'

/** A fact that weakens a promise, or keeps the engine from being used. */
export interface Finding {
  /** A short name that stays the same. */
  readonly id: string
  /** The weakened promises; none when the finding is only about whether the engine can be used. */
  readonly promises: readonly PromiseId[]
  /** The fact, and what can happen because of it. */
  readonly how: string
  readonly mend: string
}

/** What was examined and what was found. */
export interface Diagnosis {
  /** Facts about the engine, for a person to read: versions, times, what could not be examined. */
  readonly facts: readonly string[]
  readonly findings: readonly Finding[]
}
