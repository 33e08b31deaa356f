import type { Counts, History, LockRequest, Update } from '../history.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'

/** The results of the increments of one kind of register. */
export interface UpdateFigures {
  readonly accepted: number
  readonly refused: number
  /** Number of accepted increments that overwrote increments of others. */
  readonly lost: number
}

export function updateFigures(updates: readonly Update[]): UpdateFigures {
  const accepted = updates.filter(update => update.accepted)
  return {
    accepted: accepted.length,
    refused: updates.length - accepted.length,
    lost: accepted.filter(({ read, found }) => found !== read).length,
  }
}

/**
 * Checks that each write was made during a grant of its client, and that the writes to each register follow one another
 * without a gap. Also checks that the resource that refuses old tokens lost no increment and accepted no token smaller
 * than an earlier one (P2).
 */
export function checkUpdates({ updates, requests, counters }: History): Finding[] {
  const keys = new Set([...updates.map(({ key }) => key), ...Object.keys(counters)])
  const findings = [
    ...checkGrants(updates, requests),
    ...checkFencing(updates),
    ...[...keys].flatMap(key =>
      (['fenced', 'unfenced'] as const).flatMap(register =>
        checkChain(
          key,
          register,
          updates.filter(update => update.key === key && update.fenced === (register === 'fenced')),
          counters[key]?.[register],
        ),
      ),
    ),
  ]
  return findings.map(message => ({ promise: 'P2', message }))
}

/**
 * Checks that each write was made after its grant and before the request to release it. The client writes after the
 * grant, and waits for the answer before it releases. A client that died may have written at any time after its grant.
 */
function checkGrants(updates: readonly Update[], requests: readonly LockRequest[]): string[] {
  const granted = groupedBy(
    requests.filter(request => request.granted !== undefined),
    grantOf,
  )
  return updates.flatMap(update => {
    const { key, at } = update
    const grants = granted.get(grantOf(update))
    if (!grants) return [`${writer(update)} wrote to ${key} without a grant of it`]
    const isInside = grants.some(
      ({ granted: from, leaving, left = Infinity }) => from! <= at && at <= (leaving ?? left),
    )
    return isInside ? [] : [`${writer(update)} wrote to ${key} at ${at} ms, outside its grant`]
  })
}

function checkFencing(updates: readonly Update[]): string[] {
  const greatest = new Map<string, bigint>()
  const findings: string[] = []
  for (const update of updates) {
    const { who, key, token, fenced, accepted, read, found } = update
    if (!fenced || !accepted) continue
    if (read !== found)
      findings.push(`${writer(update)} wrote over what it had not read: ${key} was ${found}, not ${read}`)
    if (token === undefined) {
      findings.push(`${who} wrote to ${key} without a token, and was not refused`)
      continue
    }
    const last = greatest.get(key)
    if (last !== undefined && BigInt(token) < last)
      findings.push(`${writer(update)} wrote to ${key} after token ${last}, and was not refused`)
    else greatest.set(key, BigInt(token))
  }
  return findings
}

/**
 * Checks that each write to a register found the value that the writes before it left, and was not earlier than they
 * were. Also checks that the last write left the final value of the register.
 */
function checkChain(
  key: string,
  register: keyof Counts,
  updates: readonly Update[],
  atEnd: number | undefined,
): string[] {
  const findings: string[] = []
  const name = `the ${register} register of ${key}`
  let [left, last] = [0, -Infinity]
  for (const update of updates) {
    const { at, read, found, accepted } = update
    if (found !== left)
      findings.push(`${writer(update)} found ${found} in ${name}, where the writes before it left ${left}`)
    if (at < last)
      findings.push(
        `${writer(update)} wrote to ${name} at ${at} ms, and the write before it was at ${last} ms`,
      )
    left = accepted ? read + 1 : found
    last = at
  }
  if (atEnd === undefined) findings.push(`the final value of ${name} is missing`)
  else if (atEnd !== left) findings.push(`${name} has ${atEnd} at the end, and the writes leave it ${left}`)
  return findings
}

/** Returns a string that identifies a grant. */
function grantOf({ who, key, token = '' }: LockRequest | Update): string {
  return JSON.stringify([who, key, token])
}

function writer({ who, token }: Update): string {
  return token === undefined ? who : `${who} with token ${token}`
}
