import type { Claim } from '../../engine/claim.js'
import type { SessionInfo } from '../../engine/contract.js'

/** The details of a holder in the text of a held key, after the fields that the code writes. */
interface Details {
  readonly host: string
  readonly pid: number
  readonly label?: string | undefined
  /** All keys of the grant, if it has more than one. */
  readonly keys?: readonly string[] | undefined
}

/** Returns the details of a grant, with the label of the member if it has none of its own. */
export function heldText(member: SessionInfo, label?: string, claims: readonly Claim[] = []): string {
  const keys = claims.length > 1 ? claims.map(({ key }) => key) : undefined
  return JSON.stringify({
    host: member.host,
    pid: member.pid,
    label: label ?? member.label,
    keys,
  } satisfies Details)
}

/** The parts of the text of a key that an exclusive grant of Signalbox holds. */
export interface HeldText {
  readonly id: string
  readonly number: number
  /** When it entered the queue, by the server's wall clock, in milliseconds. */
  readonly since: number
  readonly details: string
}

/** Parses such a text; undefined for the text of a foreign client, and without a text. */
export function parseHeldText(text = ''): HeldText | undefined {
  const [, id, number, since, details] = /^signalbox\/1 (\S+) (\d+) (\d+) (.*)$/s.exec(text) ?? []
  return id === undefined
    ? undefined
    : { id, number: Number(number), since: Number(since), details: details! }
}

/** The process that a request belongs to, with empty fields for a foreign client. */
export function whoIs(
  id: string,
  details: string,
): { session: string; host: string; pid: number; label: string | undefined } {
  const { host, pid, label } = detailsIn(details)
  return { session: id.slice(0, Math.max(0, id.lastIndexOf('.'))), host, pid, label }
}

/** Parses the details of a holder, which a foreign client does not have. */
export function detailsIn(details: string): Details {
  return details === '' ? { host: '', pid: 0 } : (JSON.parse(details) as Details)
}
