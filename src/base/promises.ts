import type { PromiseId } from './guarantees.js'

/** The promises in a few words; `docs/guarantees.md` describes them. */
export const PROMISES: Readonly<Record<PromiseId, string>> = {
  P1: 'mutual exclusion',
  P2: 'tokens increase',
  P3: 'conservative deadlines',
  P4: 'first come, first served',
  P5: 'waiters are woken',
  P6: 'all or nothing',
  P7: 'a release affects only its own grant',
  P8: 'giving up leaves nothing behind',
  P9: 'dead processes lose their locks',
  P10: 'specific errors',
  P11: 'wall clocks may jump',
  P12: 'no leaks, no background errors',
  P13: 'commits are atomic and durable',
}
