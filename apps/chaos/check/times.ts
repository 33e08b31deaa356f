import type { History } from '../history.js'
import type { Finding } from './finding.js'

/** A name of a time in a history, and that time, if there was one. */
type Step = readonly [name: string, at: number | undefined]

/**
 * Whether the times of each request for a lock (P1), and of each transfer and call of the store (P13), are in the order
 * in which its client goes through them. All are read from one clock, so no difference is excused.
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
      // Another client reports it, and may do so when the request is over.
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

/** A finding if one of the times is before the one that precedes it. */
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
