import type { Claim } from '../../src/engine/claim.js'
import type { LockRequest } from '../../src/engine/contract.js'

/** A request as a box makes it: the session is what stands before the dot in its id. */
export function lockRequest(id: string, claims: readonly Claim[] = [], label?: string): LockRequest {
  return { id, session: id.split('.')[0]!, claims, label }
}
