import type { Explanation } from '../limiter.js'
import type { Reserved } from '../rules/reserve.js'

/** The explanation that an answer gives. @param place how many callers are before the one that asks. */
export function explanationOf({ now, pausedUntil, explained }: Reserved, place: number): Explanation {
  const { ready, binding, reports } = explained!
  const readyIn = ready - now
  return {
    waitsFor: pausedUntil > now ? 'pause' : readyIn > 0 ? 'limit' : 'nothing',
    binding: binding === undefined ? undefined : reports[binding],
    place,
    readyIn,
    running: 0,
    limits: reports,
  }
}

/** The same explanation where nothing is there sooner. @param readyIn milliseconds. */
export function notBefore(explanation: Explanation, readyIn: number): Explanation {
  if (explanation.readyIn >= readyIn) return explanation
  const { waitsFor } = explanation
  return { ...explanation, waitsFor: waitsFor === 'nothing' ? 'limit' : waitsFor, readyIn }
}
