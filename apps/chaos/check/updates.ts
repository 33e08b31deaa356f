import type { LockRequest, Update } from '../history.js'
import type { Finding } from './finding.js'

/** What became of the increments of one kind of register. */
export interface UpdateFigures {
  readonly accepted: number
  readonly refused: number
  /** Increments of others that an accepted one wrote over. */
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
 * Whether each write was made under a lock that its client had got, and the resource that refuses old tokens lost no
 * increment and took no token that is smaller than one before it (P2).
 */
export function checkUpdates(updates: readonly Update[], requests: readonly LockRequest[]): Finding[] {
  const granted = new Set(requests.filter(request => request.granted !== undefined).map(grantOf))
  const greatest = new Map<string, bigint>()
  const findings: string[] = []
  for (const update of updates) {
    const { who, key, token, fenced, accepted, read, found } = update
    if (!granted.has(grantOf(update)))
      findings.push(`${writer(update)} wrote to ${key} without a grant of it`)
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
  return findings.map(message => ({ promise: 'P2', message }))
}

/** What tells grants apart. */
function grantOf({ who, key, token = '' }: LockRequest | Update): string {
  return JSON.stringify([who, key, token])
}

function writer({ who, token }: Update): string {
  return token === undefined ? who : `${who} with token ${token}`
}
