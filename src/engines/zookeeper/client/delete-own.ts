import { ClosedError, LostError } from '../../../errors.js'
import { ConnectionLossError, NoNodeError } from './errors.js'
import { insist } from './insist.js'
import type { ZooKeeper } from './zookeeper.js'

/** Deletes a node, and is content when it has gone already, or goes with the session that has ended. */
export async function deleteOwn(zk: ZooKeeper, path: string): Promise<void> {
  for (;;) {
    try {
      await insist(() => zk.delete(path))
      return
    } catch (error) {
      if (error instanceof ConnectionLossError) continue
      if (error instanceof NoNodeError || error instanceof LostError || error instanceof ClosedError) return
      throw error
    }
  }
}
