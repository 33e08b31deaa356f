import type { History, LockRequest } from '../history.js'
import type { Finding } from './finding.js'
import { explains, type Trouble } from './troubles.js'

/**
 * Checks that each grant lasted until its holder released it (P3). A client may lose a grant, or get no answer to a
 * release, only if something kept it from renewing: a fault, a process that did not run, or an engine that did not
 * answer.
 */
export function checkLosses({ requests }: History, troubles: readonly Trouble[]): Finding[] {
  const lost = requests.filter(({ granted, end }) => granted !== undefined && isLoss(end))
  return lost
    .filter(request => !troubles.some(trouble => explains(trouble, request)))
    .map(({ who, key, granted, end }) => ({
      promise: 'P3',
      message: `${who} ${end === 'lost' ? 'lost' : 'could not release'} ${key}, granted at ${granted!} ms, and nothing had kept it from the engine`,
    }))
}

function isLoss(end: LockRequest['end']): boolean {
  return end === 'lost' || end === 'unknown'
}
