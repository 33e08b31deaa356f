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
  // Without the zone, after a `%`. A URL has no leading zeros and no embedded notation of IPv4.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`)
  const [first = [], last = []] = hostname
    .slice(1, -1)
    .split('::')
    .map(part => part.split(':').filter(group => group !== ''))
  const zeros = Array<string>(GROUPS - first.length - last.length).fill('0')
  const groups = [...first, ...zeros, ...last]
  if (groups.slice(0, -2).join(':') === MAPPED) return groups.slice(-2).flatMap(bytesOf).join('.')
  return `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`
}

function bytesOf(group: string): readonly number[] {
  const number = parseInt(group, 16)
  return [number >> 8, number & 255]
}
