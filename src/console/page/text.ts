import type { Claim } from '../../engine/claim.js'
import { printable } from '../../base/printable.js'
import type { Who } from '../messages.js'

/** What a person calls a session: its label, or its ID. */
export function nameOf({ session, label }: Who): string {
  return printable(label ?? (session === '' ? 'client of another library' : session))
}

/** Where a session runs. */
export function placeOf({ host, pid, session }: Who): string {
  return session === '' ? 'not known' : `${printable(host)} · pid ${pid}`
}

/** A claim in words. */
export function modeOf(claim: Claim): string {
  return claim.mode === 'permits' ? `${claim.permits} of ${claim.max} permits` : claim.mode
}

/** A date with the time of day. */
export function dateOf(at: number): string {
  return new Date(at).toLocaleString('sv-SE')
}
