import type { History, LockRequest } from '../history.js'
import type { Finding } from './finding.js'
import { grouped } from './grouped.js'
import { inOrder, overlaps, type Interval } from './intervals.js'
import { linearizable } from './linearizable.js'
import { lockOperations } from './lock-history.js'

/** A request from its grant to the last moment at which the lock said that it is held. */
interface Held extends Interval {
  readonly request: LockRequest
}

/** Whether grants excluded each other (P1), had rising tokens (P2), and came in the order of arrival (P4). */
export function checkLocks({ requests, faults }: History): {
  findings: Finding[]
  undecided: number
  orders: number
} {
  const findings: Finding[] = []
  let undecided = 0
  let orders = 0
  for (const [key, ofKey] of grouped(requests, request => request.key)) {
    const held = ofKey.flatMap(heldOf)
    const told = new Set<Held>()
    for (const [one, other] of overlaps(held)) {
      // One that believes for long that it holds meets many.
      if (told.has(one)) continue
      told.add(one)
      findings.push({ promise: 'P1', message: `${text(one)} and ${text(other)} both held ${key}` })
    }
    const order = checkOrder(key, ofKey, faults)
    orders += order.compared
    findings.push(...checkTokens(key, ofKey, held), ...order.findings)
    const answer = linearizable(' 0', lockOperations(ofKey))
    if (answer === 'undecided') undecided++
    if (answer === 'no')
      findings.push({
        promise: 'P1',
        message: `no order of grants and releases explains what became of ${key}`,
      })
  }
  return { findings, undecided, orders }
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

/**
 * Who was seen in the queue before another one called is served first. That is no promise around a fault, where turns are
 * missed, nor within one client, which may hand a grant on to itself a few times.
 */
function checkOrder(
  key: string,
  requests: readonly LockRequest[],
  faults: History['faults'],
): { findings: Finding[]; compared: number } {
  const findings: Finding[] = []
  let compared = 0
  const troubled = faults.map(({ at, until, recovery = Infinity }) => ({
    at,
    until: Math.max(until, at + recovery),
  }))
  const served = requests
    .filter(({ granted }) => granted !== undefined)
    .sort((one, other) => one.granted! - other.granted!)
  const waiting = requests.filter(({ queued }) => queued !== undefined)
  for (const [index, later] of served.entries()) {
    if (served[index - 1]?.who === later.who) continue
    for (const earlier of waiting) {
      const end = earlier.granted ?? earlier.left ?? Infinity
      if (earlier.who === later.who || earlier.queued! >= later.asked || end <= later.asked) continue
      if (troubled.some(({ at, until }) => at <= later.granted! && until >= earlier.asked)) continue
      // Calls of one client for one key stand behind one request of the client.
      if (requests.some(other => other !== earlier && other.who === earlier.who && meet(other, earlier)))
        continue
      compared++
      if (end <= later.granted!) continue
      findings.push({
        promise: 'P4',
        message: `${later.who}, asking at ${later.asked}, came to ${key} before ${earlier.who}, in the queue at ${earlier.queued!}`,
      })
    }
  }
  return { findings, compared }
}

function meet(one: LockRequest, other: LockRequest): boolean {
  return one.asked <= (other.left ?? Infinity) && other.asked <= (one.left ?? Infinity)
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
