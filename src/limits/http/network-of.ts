import { isIPv6 } from 'node:net'

const GROUPS = 8
const NETWORK_GROUPS = 4
/** The first six groups of an IPv4 address that is written as one of IPv6. */
const MAPPED = '0:0:0:0:0:ffff'

/**
 * Returns the sender that an IP address belongs to, for the `key` of a limit of requests: of IPv6, the /64 network,
 * because a client has all its addresses and could use another one for each request; of IPv4, the address. Returns any
 * other value, such as undefined, as it is.
 *
 * ```ts
 * app.use(limitRequests(limiter, { key: request => networkOf(request.ip) }))
 * ```
 */
export function networkOf<A extends string | undefined>(address: A): A | string {
  if (address === undefined || !isIPv6(address)) return address
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
