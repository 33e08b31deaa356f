import { ensureNode, type ZooKeeper } from 'signalbox-zookeeper'
import type { BoxContext } from './box-context.js'

/** Creates the nodes that everything else is below. */
export async function makeFolders(client: ZooKeeper, { place, paths }: BoxContext): Promise<void> {
  const stats = await Promise.all(paths.folders.map(path => client.exists(path)))
  for (const [index, path] of paths.folders.entries())
    if (!stats[index]) await ensureNode(client, path, { acl: place.acl })
}
