import { placeOf } from './node-name.js'
import { RedisReplyError } from './connection.js'

/** Where a node of a cluster sends a command on to. */
export interface Redirection {
  /** MOVED: for good. ASK: for this command. TRYAGAIN: the keys are on their way; the same node, a little later. */
  readonly kind: 'MOVED' | 'ASK' | 'TRYAGAIN'
  readonly slot: number
  readonly node: string
}

/**
 * Reads the redirection from an error; undefined for other errors.
 * @param asked the node that said so: one that doesn't know what another is called gives its port only, and that is
 * then on the same host
 */
export function redirectionOf(error: unknown, asked: string): Redirection | undefined {
  if (!(error instanceof RedisReplyError)) return undefined
  const { code: kind, message } = error
  if (kind === 'TRYAGAIN') return { kind, slot: -1, node: asked }
  if (kind !== 'MOVED' && kind !== 'ASK') return undefined
  const [, slot, node = ''] = message.split(' ')
  return { kind, slot: Number(slot), node: node.lastIndexOf(':') === 0 ? placeOf(asked).host + node : node }
}
