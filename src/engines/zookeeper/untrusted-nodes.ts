import { digestId, NoNodeError, PERMISSIONS, type Acl, type ZooKeeper } from 'signalbox-zookeeper'
import type { NodePaths } from './names.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** What to do about a node that other clients may change. */
export const TRUST_ADVICE =
  'Such a client could delete and forge locks: set the ACL of this node with setAcl, or name the client in the acl of the URL'

/**
 * Says which other client may change a node that all boxes share, although the ACL of the URL does not permit it:
 * somebody else created the node, or a box with another ACL. Undefined if none may, or the ACL permits it to everybody.
 * Skips missing nodes.
 */
export async function untrustedNode(
  client: ZooKeeper,
  place: ZooKeeperPlace,
  { shared }: NodePaths,
): Promise<string | undefined> {
  const permitted = place.acl.map(entry => (entry.scheme === 'auth' ? ownEntry(place, entry) : entry))
  if (permitted.some(({ scheme, permissions }) => scheme === 'world' && isChange(permissions)))
    return undefined
  const found = await Promise.all(shared.map(path => aclOf(client, path)))
  for (const [index, acl] of found.entries()) {
    const entry = acl.find(each => isChange(each.permissions) && !permitted.some(own => covers(own, each)))
    if (entry) return `${nameOf(entry)} may change the node ${shared[index]!}`
  }
  return undefined
}

async function aclOf(client: ZooKeeper, path: string): Promise<readonly Acl[]> {
  try {
    return (await client.getAcl(path)).acl
  } catch (error) {
    if (error instanceof NoNodeError) return []
    throw error
  }
}

function isChange(permissions: number): boolean {
  return (permissions & ~PERMISSIONS.read) !== 0
}

function covers(own: Acl, { scheme, id, permissions }: Acl): boolean {
  // The server hides the digest from clients without the permission `admin`.
  const isSame = own.id === id || (scheme === 'digest' && id === `${userOf(own.id)}:x`)
  return own.scheme === scheme && isSame && (permissions & ~own.permissions) === 0
}

/** Returns the entry that the server stores for one of the scheme `auth`. */
function ownEntry({ connect: { auth, sasl } }: ZooKeeperPlace, { permissions }: Acl): Acl {
  if (sasl) return { permissions, scheme: 'sasl', id: sasl.user }
  const login = String(auth![0]!.data)
  return { permissions, scheme: 'digest', id: digestId(userOf(login), login.slice(userOf(login).length + 1)) }
}

/** Returns the client of an entry, without a digest. */
function nameOf({ scheme, id }: Acl): string {
  return `${scheme}:${scheme === 'digest' ? userOf(id) : id}`
}

function userOf(login: string): string {
  return login.slice(0, login.indexOf(':'))
}
