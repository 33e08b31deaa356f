import type { PromiseId } from '../guarantees.js'

/** Something that weakens a promise, or prevents the engine from being used. */
export interface Finding {
  /** A short name that does not change between versions. */
  readonly id: string
  /** The weakened promises; empty if the finding is only about whether the engine can be used. */
  readonly promises: readonly PromiseId[]
  /** What was found, and what can happen because of it. */
  readonly how: string
  readonly fix: string
}

/** The result of `diagnose`. */
export interface Diagnosis {
  /** Facts about the engine, for people: versions, clocks, what could not be examined. */
  readonly facts: readonly string[]
  readonly findings: readonly Finding[]
}
