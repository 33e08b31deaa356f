import { printable, type Claim } from 'signalbox/reports'
import type { Who } from '../messages.js'

/** Returns the name of a session for people: its label, or its ID. */
export function nameOf({ session, label }: Who): string {
  return printable(label ?? (session === '' ? 'client of another library' : session))
}

/** Returns the host and the process of a session. */
export function placeOf({ host, pid, session }: Who): string {
  return session === '' ? 'not known' : `${printable(host)} · pid ${pid}`
}

/** Describes a claim in words. */
export function modeOf(claim: Claim): string {
  return claim.mode === 'permits' ? `${claim.permits} of ${claim.max} permits` : claim.mode
}

/** Formats a date with the time of day. */
export function dateOf(at: number): string {
  return new Date(at).toLocaleString('sv-SE')
}
