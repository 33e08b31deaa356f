import type { PromiseId } from '../../guarantees.js'

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

/** The promises in a few words; `docs/guarantees.md` has them whole. */
export const PROMISES: Readonly<Record<PromiseId, string>> = {
  P1: 'one at a time',
  P2: 'tokens rise',
  P3: 'an honest deadline',
  P4: 'first come, first served',
  P5: 'woken, not polling',
  P6: 'all or nothing',
  P7: 'a release touches nobody else',
  P8: 'giving up leaves nothing behind',
  P9: 'the dead hold nothing',
  P10: 'errors that tell',
  P11: 'clocks may jump',
  P12: 'quiet',
  P13: 'nothing is lost',
}
