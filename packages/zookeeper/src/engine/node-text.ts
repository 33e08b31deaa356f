import type { Claim } from 'signalbox'
import type { SessionInfo } from 'signalbox/engine'

/** The data in the node of a request. */
export interface NodeText {
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  /** All claims of the request, each of which has a node. The nodes after the first one list only their own. */
  readonly claims: readonly Claim[]
  /** The key of the request's first node; undefined for that one. */
  readonly first: string | undefined
  /** In milliseconds. */
  readonly lease: number
  /** The number of the grant, if it is not the ID of the transaction that created the node. */
  readonly number: number | undefined
}

/**
 * Encodes the data of a node. It is text, so that clients in other languages can read it.
 * @param own the claim that the node stands for, one of the request's.
 */
export function nodeText(
  { session, host, pid, label: box }: SessionInfo,
  request: { label: string | undefined; claims: readonly Claim[]; lease: number },
  own: Claim,
  number?: number,
): string {
  const { label = box, claims: all, lease } = request
  const [{ key }] = all as [Claim]
  const listed = own.key === key ? { claims: all } : { claims: [own], first: key }
  return JSON.stringify({ session, host, pid, label, ...listed, lease, number })
}

/** Parses the data of a node; undefined for a node of another library. */
export function parseNode(data: Buffer): NodeText | undefined {
  try {
    const text = JSON.parse(data.toString()) as Partial<NodeText> | null
    return Array.isArray(text?.claims) && typeof text.session === 'string' ? (text as NodeText) : undefined
  } catch {
    return undefined
  }
}
