import { placeOf } from './node-name.js'
import { RedisReplyError } from './connection.js'

/** A redirection of a command to another node of a cluster. */
export interface Redirection {
  /**
   * MOVED: permanently. ASK: for this command only. TRYAGAIN: the keys are being migrated; ask the same node a little
   * later.
   */
  readonly kind: 'MOVED' | 'ASK' | 'TRYAGAIN'
  readonly slot: number
  readonly node: string
}

/**
 * Parses the redirection in an error; undefined for other errors.
 * @param asked the node that has redirected. If it does not know the host of the other node, it gives only the port,
 * and the host is its own.
 */
export function redirectionOf(error: unknown, asked: string): Redirection | undefined {
  if (!(error instanceof RedisReplyError)) return undefined
  const { code: kind, message } = error
  if (kind === 'TRYAGAIN') return { kind, slot: -1, node: asked }
  if (kind !== 'MOVED' && kind !== 'ASK') return undefined
  const [, slot, node = ''] = message.split(' ')
  return { kind, slot: Number(slot), node: node.lastIndexOf(':') === 0 ? placeOf(asked).host + node : node }
}
