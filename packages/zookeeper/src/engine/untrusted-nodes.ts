import { digestId, NoAuthError, NoNodeError, PERMISSIONS, type Acl, type ZooKeeper } from '../index.js'
import type { NodePaths } from './names.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** A node that other clients may change, or whose ACL this client may not read. */
export interface UntrustedNode {
  readonly how: string
  readonly fix: string
}

/**
 * Finds a node shared by all boxes that another client may change although the ACL of the URL does not permit it:
 * another client created the node, or a box with another ACL. Also reports a node whose ACL this client may not read.
 * Undefined if there is none, or the ACL permits changes to all clients. Skips missing nodes.
 */
export async function untrustedNode(
  client: ZooKeeper,
  place: ZooKeeperPlace,
  { shared }: NodePaths,
): Promise<UntrustedNode | undefined> {
  const { auth, sasl } = place.connect
  const self: Acl[] = auth || sasl ? [{ permissions: PERMISSIONS.all, scheme: 'auth', id: '' }] : []
  const permitted = [...self, ...place.acl].map(entry =>
    entry.scheme === 'auth' ? ownEntry(place, entry) : entry,
  )
  if (permitted.some(({ scheme, permissions }) => scheme === 'world' && isChange(permissions)))
    return undefined
  const found = await Promise.all(shared.map(path => aclOf(client, path)))
  for (const [index, acl] of found.entries()) {
    const path = shared[index]!
    if (acl === 'hidden') {
      return {
        how: `this client may not read the ACL of the node ${path}, so others might be able to change it`,
        fix: 'Give this client the permission r on the node with setAcl.',
      }
    }
    const entry = acl.find(each => isChange(each.permissions & ~permissionsOf(each, permitted)))
    if (entry) {
      return {
        how: `${nameOf(entry)} may change the node ${path}`,
        fix:
          'Such a client could delete and forge locks: set the ACL of this node with setAcl, or name the client in ' +
          'the acl of the URL',
      }
    }
  }
  return undefined
}

/** Returns the ACL of a node, empty if the node is missing; `hidden` without the permission `read` or `admin`. */
async function aclOf(client: ZooKeeper, path: string): Promise<readonly Acl[] | 'hidden'> {
  try {
    return (await client.getAcl(path)).acl
  } catch (error) {
    if (error instanceof NoNodeError) return []
    if (error instanceof NoAuthError) return 'hidden'
    throw error
  }
}

function isChange(permissions: number): boolean {
  return (permissions & ~PERMISSIONS.read) !== 0
}

/** Returns the sum of the permissions that several entries give to the client of one. */
function permissionsOf({ scheme, id }: Acl, entries: readonly Acl[]): number {
  return entries
    .filter(own => {
      // The server hides the digest from clients without the permission `admin`.
      const isSame = own.id === id || (scheme === 'digest' && id === `${userOf(own.id)}:x`)
      return own.scheme === scheme && isSame
    })
    .reduce((sum, { permissions }) => sum | permissions, 0)
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
