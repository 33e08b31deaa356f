import { randomUUID } from 'node:crypto'
import type { CreateOptions } from './calls.js'
import { ConnectionLossError, NodeExistsError, NoNodeError } from './errors.js'
import { checkPath } from './paths.js'
import { ifExists, retryUnsent, settled } from './settled.js'
import type { ZooKeeper } from './zookeeper.js'

/**
 * Creates a node exactly once, even if replies get lost. Its name begins with `_c_GUID-`, like Curator's protected
 * nodes, to find it again. Creates missing parents as containers. If the node is deleted before it could be looked for,
 * it is created once more.
 * @returns its path
 * @throws like {@link settled}; for an ephemeral node, which ends with the session, the error that ended the session
 */
export async function createSettled(
  zk: ZooKeeper,
  path: string,
  data: string | Uint8Array = '',
  options: CreateOptions = {},
): Promise<string> {
  checkPath(path, options.sequential)
  const end = path.lastIndexOf('/')
  const folder = path.slice(0, end)
  return `${folder}/${await createChild(zk, folder, `_c_${randomUUID()}-${path.slice(end + 1)}`, data, options)}`
}

/**
 * Creates a child exactly once, even if replies get lost.
 * @param folder '' for the root.
 * @param name a unique name, so that the child is found again.
 * @returns the child's name, with the number if it is sequential
 */
export async function createChild(
  zk: ZooKeeper,
  folder: string,
  name: string,
  data: string | Uint8Array,
  options: CreateOptions,
): Promise<string> {
  let unseen: unknown
  const create = async (): Promise<string> => {
    const path = await createBelow(zk, `${folder}/${name}`, data, options)
    return path.slice(folder.length + 1)
  }
  const look = async (): Promise<{ answer: string } | undefined> => {
    const children = await currentChildren(zk, folder === '' ? '/' : folder).catch((why: unknown) => {
      throw (unseen = why)
    })
    const answer = children.find(child => child.startsWith(name))
    return answer === undefined ? undefined : { answer }
  }
  try {
    return await settled(create, look)
  } catch (error) {
    // The client could not look because the session has ended. An ephemeral node has ended with it; any other node may
    // exist.
    throw options.ephemeral && unseen ? unseen : error
  }
}

/** Creates a node unless it exists, with missing parents as containers. */
export async function ensureNode(zk: ZooKeeper, path: string, options: CreateOptions): Promise<void> {
  for (;;) {
    try {
      await createBelow(zk, path, '', options)
      return
    } catch (error) {
      if (error instanceof NodeExistsError) return
      if (!(error instanceof ConnectionLossError)) throw error
    }
  }
}

/** The current names of the children; none if the node does not exist. */
export async function currentChildren(zk: ZooKeeper, path: string): Promise<string[]> {
  const found = await ifExists(retryUnsent(() => zk.getChildren(path, { linearizable: true })))
  return found?.children ?? []
}

/** Creates a node. Creates its parent when it is missing, because servers delete containers without children. */
async function createBelow(
  zk: ZooKeeper,
  path: string,
  data: string | Uint8Array,
  options: CreateOptions,
): Promise<string> {
  for (;;) {
    try {
      return (await retryUnsent(() => zk.create(path, data, options))).path
    } catch (error) {
      if (!(error instanceof NoNodeError) || path === '/') throw error
      const parent = path.slice(0, Math.max(path.lastIndexOf('/'), 1))
      await ensureNode(zk, parent, { container: true, ...(options.acl && { acl: options.acl }) })
    }
  }
}
