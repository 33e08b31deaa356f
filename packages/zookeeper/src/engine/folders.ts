import { ensureNode, NoAuthError, type ZooKeeper } from '../index.js'
import { UnavailableError } from 'signalbox'
import type { BoxContext } from './box-context.js'
import { untrustedNode } from './untrusted-nodes.js'

/**
 * Creates the nodes above all others.
 * @throws UnavailableError if another client may change one of them, although the ACL of the URL does not permit it
 */
export async function makeFolders(client: ZooKeeper, { place, paths }: BoxContext): Promise<void> {
  const exist = await Promise.all(paths.folders.map(path => exists(client, path)))
  for (const [index, path] of paths.folders.entries())
    if (!exist[index]) await ensureNode(client, path, { acl: place.acl })
  const untrusted = await untrustedNode(client, place, paths)
  if (untrusted === undefined) return
  throw new UnavailableError(
    `the ACL of a node of ${place.name} is not safe: ${untrusted.how}. ${untrusted.fix}`,
    {
      engine: place.name,
    },
  )
}

/**
 * Whether a node exists. Newer servers report an existing node only to clients that may read it, but a missing node to
 * all.
 */
async function exists(client: ZooKeeper, path: string): Promise<boolean> {
  try {
    return (await client.exists(path)) !== undefined
  } catch (error) {
    if (error instanceof NoAuthError) return true
    throw error
  }
}
