import { ensureNode } from './client/create-settled.js'
import type { Acl, ZooKeeper } from './client/index.js'
import type { Places } from './names.js'

/** Creates the nodes that have to be there before anything else. */
export async function makeFolders(
  client: ZooKeeper,
  { folders }: Places,
  acl: readonly Acl[],
): Promise<void> {
  const stats = await Promise.all(folders.map(path => client.exists(path)))
  for (const [index, path] of folders.entries()) if (!stats[index]) await ensureNode(client, path, { acl })
}
