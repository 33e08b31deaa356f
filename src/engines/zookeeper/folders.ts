import { ConnectionLossError, NodeExistsError, type Acl, type ZooKeeper } from './client/index.js'
import type { Places } from './names.js'

/** Creates the nodes that have to be there before anything else. */
export async function makeFolders(
  client: ZooKeeper,
  { folders }: Places,
  acl: readonly Acl[],
): Promise<void> {
  const stats = await Promise.all(folders.map(path => client.exists(path)))
  for (const [index, path] of folders.entries()) if (!stats[index]) await makeFolder(client, path, acl)
}

async function makeFolder(client: ZooKeeper, path: string, acl: readonly Acl[]): Promise<void> {
  for (;;) {
    try {
      await client.create(path, '', { acl })
      return
    } catch (error) {
      if (error instanceof NodeExistsError) return
      if (!(error instanceof ConnectionLossError)) throw error
    }
  }
}
