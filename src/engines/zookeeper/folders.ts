import { ensureNode, type ZooKeeper } from 'signalbox-zookeeper'
import { UnavailableError } from '../../errors.js'
import type { BoxContext } from './box-context.js'
import { TRUST_ADVICE, untrustedNode } from './untrusted-nodes.js'

/**
 * Creates the nodes that everything else is below.
 * @throws UnavailableError if another client may change one of them, although the ACL of the URL does not permit it
 */
export async function makeFolders(client: ZooKeeper, { place, paths }: BoxContext): Promise<void> {
  const stats = await Promise.all(paths.folders.map(path => client.exists(path)))
  for (const [index, path] of paths.folders.entries())
    if (!stats[index]) await ensureNode(client, path, { acl: place.acl })
  const untrusted = await untrustedNode(client, place, paths)
  if (untrusted === undefined) return
  throw new UnavailableError(
    `the ACL of a node of ${place.name} is not safe: ${untrusted}. ${TRUST_ADVICE}`,
    {
      engine: place.name,
    },
  )
}
