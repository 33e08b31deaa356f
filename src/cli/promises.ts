import type { PromiseId } from '../guarantees.js'

/** The promises in a few words; `docs/guarantees.md` has them whole. */
export const PROMISES: Readonly<Record<PromiseId, string>> = {
  P1: 'one at a time',
  P2: 'tokens rise',
  P3: 'an honest deadline',
  P4: 'first come, first served',
  P5: 'woken, not polling',
  P6: 'all or nothing',
  P7: 'a release touches no other grant',
  P8: 'giving up leaves nothing behind',
  P9: 'the dead hold nothing',
  P10: 'errors that tell',
  P11: 'clocks may jump',
  P12: 'quiet',
  P13: 'nothing is lost',
}
