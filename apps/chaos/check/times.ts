import type { History } from '../history.js'
import type { Finding } from './finding.js'

/** The name of a time in a history, and the time, if known. */
type Step = readonly [name: string, at: number | undefined]

/**
 * Checks that the times of each request for a lock (P1), and of each transfer and call of the store (P13), are in the
 * order of the client's steps. All times come from one clock, so there is no tolerance.
 */
export function checkTimes({ requests, transfers, calls }: History): Finding[] {
  return [
    ...requests.flatMap(({ who, key, asked, queued, granted, heldUntil, leaving, left }): Finding[] => {
      const what = `the request of ${who} for ${key}`
      const own: readonly Step[] = [
        ['asked', asked],
        ['granted', granted],
        ['heldUntil', heldUntil],
        ['leaving', leaving],
        ['left', left],
      ]
      // Another client reports `queued`, possibly after the end of the request.
      const seen: readonly Step[] = [
        ['asked', asked],
        ['queued', queued],
      ]
      return [own, seen].flatMap(steps => backwards('P1', what, steps))
    }),
    ...transfers.flatMap(({ who, id, asked, settled }) =>
      backwards('P13', `a delivery of ${id} by ${who}`, [
        ['asked', asked],
        ['settled', settled],
      ]),
    ),
    ...calls.flatMap(({ who, key, from, until }) =>
      backwards('P13', `a call of ${who} for ${key}`, [
        ['from', from],
        ['until', until],
      ]),
    ),
  ]
}

/** Returns a finding if a time is earlier than the one before it in `steps`. */
function backwards(promise: Finding['promise'], what: string, steps: readonly Step[]): Finding[] {
  let [before, latest]: readonly [string, number] = ['', -Infinity]
  for (const [name, at] of steps) {
    if (at === undefined) continue
    if (at < latest)
      return [{ promise, message: `${what} has ${name} at ${at} ms, before ${before} at ${latest} ms` }]
    ;[before, latest] = [name, at]
  }
  return []
}
