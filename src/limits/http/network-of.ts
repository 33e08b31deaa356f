import { isIPv6 } from 'node:net'

const GROUPS = 8
const NETWORK_GROUPS = 4

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
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? []
  if (mapped !== undefined) return mapped
  // The zone, after a `%`, and an IPv4 address at the end are not in the first half.
  const [before = '', after] = address
    .replace(/%.*/, '')
    .replace(/[\d.]+\.[\d.]+$/, '0:0')
    .split('::')
  const first = groupsOf(before)
  const last = groupsOf(after ?? '')
  const zeros = Array<string>(GROUPS - first.length - last.length).fill('0')
  return `${[...first, ...zeros, ...last].slice(0, NETWORK_GROUPS).join(':')}::/64`
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':').map(group => parseInt(group, 16).toString(16))
}
