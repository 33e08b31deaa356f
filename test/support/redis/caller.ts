import type { Caller } from '../../../src/engines/redis/call.js'
import { heldText } from '../../../src/engines/redis/held-text.js'

/** A session without a box, whose calls a test makes. */
export function callerOf(session: string): Caller {
  const member = { session, host: 'host', pid: 1, label: undefined }
  return { member, memberText: heldText(member) }
}
