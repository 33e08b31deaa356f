import type { PromiseId } from '../base/guarantees.js'

/** A condition that weakens a promise, or prevents the use of the engine. */
export interface Finding {
  /** A short name that does not change between versions. */
  readonly id: string
  /** The weakened promises; empty if the finding only prevents the use of the engine. */
  readonly promises: readonly PromiseId[]
  /** The condition that was found, and its possible effects. */
  readonly how: string
  readonly fix: string
}

/** The result of `diagnose`. */
export interface Diagnosis {
  /** Facts about the engine, for people: versions, clocks, what could not be examined. */
  readonly facts: readonly string[]
  readonly findings: readonly Finding[]
}
