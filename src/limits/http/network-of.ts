import { isIP } from 'node:net'
import { forwardedNode } from './forwarded-node.js'

const GROUPS = 8
const NETWORK_GROUPS = 4
/** The first six groups of an IPv4 address that is written as one of IPv6. */
const MAPPED = '0:0:0:0:0:ffff'

/**
 * Returns the sender that an IP address belongs to, for the `key` of a limit of requests: of IPv6, the /64 network,
 * because a client has all its addresses and could use another one for each request; of IPv4, the address. Accepts each
 * notation of `X-Forwarded-For` and `Forwarded`: ports, brackets, quotes, zones and `for=`. Of a list, the last address
 * counts, because the nearest proxy has added it; clients can forge the others.
 *
 * `unknown` and names such as `_hidden` (RFC 7239) are returned without a port. Any other value, such as undefined, is
 * returned as it is.
 *
 * ```ts
 * app.use(limitRequests(limiter, { key: request => networkOf(request.ip) }))
 * ```
 */
export function networkOf<A extends string | undefined>(address: A): A | string {
  if (address === undefined) return address
  const node = forwardedNode(address)
  if (/^unknown$/i.test(node)) return 'unknown'
  if (/^_[\w.-]+$/.test(node)) return node
  const version = isIP(node)
  if (version === 0) return address
  return version === 4 ? node : networkOfIPv6(node)
}

function networkOfIPv6(address: string): string {
  // Without the zone, after a `%`.
  const [before = '', after = ''] = address.replace(/%.*/, '').split('::')
  const first = groupsOf(before)
  const last = groupsOf(after)
  const zeros = Array<number>(GROUPS - first.length - last.length).fill(0)
  const groups = [...first, ...zeros, ...last]
  if (hexadecimal(groups.slice(0, -2)) === MAPPED) return groups.slice(-2).flatMap(bytesOf).join('.')
  return `${hexadecimal(groups.slice(0, NETWORK_GROUPS))}::/64`
}

function hexadecimal(groups: readonly number[]): string {
  return groups.map(group => group.toString(16)).join(':')
}

/** The numbers of groups. An IPv4 address at the end is two of them. */
function groupsOf(text: string): readonly number[] {
  if (text === '') return []
  return text.split(':').flatMap(group => {
    if (!group.includes('.')) return parseInt(group, 16)
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

function bytesOf(group: number): readonly number[] {
  return [group >> 8, group & 255]
}
