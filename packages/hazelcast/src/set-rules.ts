import type { Claim } from 'signalbox'
import { Ahead, type LockRequest, type Request, type StateMachine } from 'signalbox/engine'
import { homeOf, type OpenEntry } from './open-entry.js'

/** Returns the claims of a set on its keys other than the first. */
export function othersOf({ claims }: LockRequest): readonly Claim[] {
  const home = homeOf(claims)
  return claims.filter(({ key }) => key !== home)
}

/** Grants a set at its home. */
export function grant(state: OpenEntry, part: Request, number: number, lease: number, now: number): void {
  part.number = number
  part.lease = lease
  part.expires = now + lease
  state.changed(part)
}

/** Whether a claim could be granted at once. Expired requests are dropped first. */
export function isFree(
  state: OpenEntry,
  machine: StateMachine,
  request: LockRequest,
  claim: Claim,
  now: number,
): boolean {
  machine.decide({ type: 'sweepExpired', keys: [claim.key] }, now)
  const ahead = new Ahead()
  for (const other of state.queue(claim.key) ?? []) {
    const isSilent = other.request.phase === 'waiting' && state.hasExpired(other.request, now)
    if (other.request.id === request.id || isSilent) continue
    ahead.add(other.claim)
    if (!ahead.admits(claim)) return false
  }
  return true
}

/** Whether another box has requests for the key. */
export function isForeign(state: OpenEntry, { session }: LockRequest): boolean {
  return [...state.requests()].some(other => other.session !== session)
}

/** Returns the `max` with which the key is in use, if the claim has another one. */
export function otherMax(state: OpenEntry, claim: Claim): number | undefined {
  if (claim.mode !== 'permits') return undefined
  for (const { claim: other } of state.queue(claim.key) ?? [])
    if (other.mode === 'permits' && other.max !== claim.max) return other.max
  return undefined
}
