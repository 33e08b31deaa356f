import type { Claim } from '../../src/engine/claim.js'
import type { LockRequest } from '../../src/engine/contract.js'

/** Returns a request as a box makes it. Its session is the part of its ID before the dot. */
export function lockRequest(id: string, claims: readonly Claim[] = [], label?: string): LockRequest {
  return { id, session: id.split('.')[0]!, claims, label }
}
