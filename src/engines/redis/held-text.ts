import type { Claim } from '../../engine/claim.js'
import type { SessionInfo } from '../../engine/contract.js'

/** What a held key says about its holder, after what the code puts in front. */
interface Details {
  readonly host: string
  readonly pid: number
  readonly label?: string | undefined
  /** All keys of the grant, where it has more than one. */
  readonly keys?: readonly string[] | undefined
}

/** The details of a grant, which has the member's label if it has none of its own. */
export function heldText(member: SessionInfo, label?: string, claims: readonly Claim[] = []): string {
  const keys = claims.length > 1 ? claims.map(({ key }) => key) : undefined
  return JSON.stringify({
    host: member.host,
    pid: member.pid,
    label: label ?? member.label,
    keys,
  } satisfies Details)
}

/** The text of a key that an exclusive grant of Signalbox holds. */
export class HeldText {
  private constructor(
    readonly id: string,
    readonly number: number,
    /** When it entered the queue, by the server's wall clock, in milliseconds. */
    readonly since: number,
    readonly details: string,
  ) {}

  /** Reads such a text; undefined for that of a foreign client. */
  static of(text: string): HeldText | undefined {
    const [, id, number, since, details] = /^signalbox\/1 (\S+) (\d+) (\d+) (.*)$/s.exec(text) ?? []
    return id === undefined ? undefined : new HeldText(id, Number(number), Number(since), details!)
  }

  get keys(): readonly string[] | undefined {
    return parsed(this.details).keys
  }
}

/** The session that a request belongs to. */
function sessionOf(id: string): string {
  return id.slice(0, Math.max(0, id.lastIndexOf('.')))
}

/** The process that a request belongs to; nothing is known of foreign clients. */
export function whoIs(
  id: string,
  details: string,
): { session: string; host: string; pid: number; label: string | undefined } {
  const { host, pid, label } = parsed(details)
  return { session: sessionOf(id), host, pid, label }
}

function parsed(details: string): Details {
  return details === '' ? { host: '', pid: 0 } : (JSON.parse(details) as Details)
}
