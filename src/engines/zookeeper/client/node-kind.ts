import { InvalidArgumentError, shown } from '../../../errors.js'
import type { Acl } from './acl.js'
import { OPCODE } from './call.js'

/** What a node that is created is like; persistent, if nothing else is said. */
export interface CreateOptions {
  /** It vanishes with the session. */
  readonly ephemeral?: boolean
  /** The server adds ten digits to its name, counted by the parent. */
  readonly sequential?: boolean
  /** The server deletes it some time after its last child went. */
  readonly container?: boolean
  /** The server deletes it when it was not changed for so many milliseconds and has no children. */
  readonly ttl?: number
  /** Who may do what with it; default: everybody everything. */
  readonly acl?: readonly Acl[]
}

/** How the protocol says what a node is like. */
export interface NodeKind {
  readonly opcode: number
  readonly flags: number
  readonly ttl: bigint | undefined
}

const LONGEST_TTL = 2 ** 40 - 1

/**
 * The protocol's word for the options.
 * @throws InvalidArgumentError when they don't go together
 */
export function nodeKind({
  ephemeral = false,
  sequential = false,
  container = false,
  ttl,
}: CreateOptions): NodeKind {
  if (container && (ephemeral || sequential || ttl !== undefined))
    throw new InvalidArgumentError('a container is neither ephemeral nor sequential and has no ttl')
  if (ttl !== undefined) {
    if (ephemeral) throw new InvalidArgumentError('an ephemeral node has no ttl')
    if (!Number.isSafeInteger(ttl) || ttl < 1 || ttl > LONGEST_TTL)
      throw new InvalidArgumentError(`ttl takes 1 to ${LONGEST_TTL} whole milliseconds, not ${shown(ttl)}`)
    return { opcode: OPCODE.createTtl, flags: sequential ? 6 : 5, ttl: BigInt(ttl) }
  }
  if (container) return { opcode: OPCODE.createContainer, flags: 4, ttl: undefined }
  return { opcode: OPCODE.create2, flags: (ephemeral ? 1 : 0) + (sequential ? 2 : 0), ttl: undefined }
}
