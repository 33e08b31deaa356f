import type { History, LockRequest } from '../history.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'
import { inOrder, overlaps, type Interval } from './intervals.js'
import { linearizable } from './linearizable.js'
import { lockOperations } from './lock-history.js'

/** A request, from its grant to the last time at which the lock was reported as held. */
interface Held extends Interval {
  readonly request: LockRequest
}

/** Checks that grants excluded each other (P1) and had rising tokens (P2). */
export function checkLocks({ requests }: History): { findings: Finding[]; undecided: number } {
  const findings: Finding[] = []
  let undecided = 0
  for (const [key, ofKey] of groupedBy(requests, request => request.key)) {
    const held = ofKey.flatMap(heldOf)
    const reported = new Set<Held>()
    for (const [one, other] of overlaps(held)) {
      // A client that wrongly believes for a long time that it holds the lock overlaps with many others.
      if (reported.has(one)) continue
      reported.add(one)
      findings.push({ promise: 'P1', message: `${text(one)} and ${text(other)} both held ${key}` })
    }
    findings.push(...checkTokens(key, ofKey, held))
    const answer = linearizable(' 0', lockOperations(ofKey))
    if (answer === 'undecided') undecided++
    if (answer === 'no')
      findings.push({
        promise: 'P1',
        message: `no order of grants and releases explains what became of ${key}`,
      })
  }
  return { findings, undecided }
}

function checkTokens(key: string, requests: readonly LockRequest[], held: readonly Held[]): Finding[] {
  const findings: Finding[] = []
  const given = requests.flatMap(({ token }) => token ?? [])
  if (new Set(given).size < given.length)
    findings.push({ promise: 'P2', message: `a token of ${key} was given twice` })
  let last: Held | undefined
  for (const one of inOrder(held)) {
    if (one.request.token === undefined) continue
    if (last && BigInt(one.request.token) < BigInt(last.request.token!))
      findings.push({ promise: 'P2', message: `the token of ${text(one)} fell on ${key}` })
    last = one
  }
  return findings
}

function heldOf(request: LockRequest): Held[] {
  const { who, granted, heldUntil } = request
  if (granted === undefined || heldUntil === undefined) return []
  return [{ who, from: nanoseconds(granted), to: nanoseconds(heldUntil), request }]
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds * 1e6))
}

function text({ who, request: { token, granted } }: Held): string {
  return `${who} (${token === undefined ? '' : `token ${token}, `}granted at ${granted!.toFixed(3)} ms)`
}
