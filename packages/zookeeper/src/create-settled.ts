import { randomUUID } from 'node:crypto'
import type { CreateOptions } from './calls.js'
import { ConnectionLossError, NodeExistsError, NoNodeError } from './errors.js'
import { checkPath } from './paths.js'
import { ifExists, retryUnsent, settled } from './settled.js'
import type { ZooKeeper } from './zookeeper.js'

/**
 * Creates a node once although answers get lost: its name begins with `_c_GUID-`, as that of Curator's protected nodes,
 * by which it is found again. Containers above it are made where they are missing. If the node is deleted before it
 * could be looked for, it is created once more.
 * @returns its path
 * @throws as {@link settled}; of an ephemeral node, which goes with the session, what ended that
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
 * Creates a child exactly once, although answers get lost.
 * @param folder '' for the root of all.
 * @param name a name that is used once, so that the child is found again.
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
    // The client could not look because the session has ended, and an ephemeral node has ended with it. Any other node
    // may be there.
    throw options.ephemeral && unseen ? unseen : error
  }
}

/** Creates a node, with containers above it where they are missing, unless it is there. */
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

/** The names of the children as they are by now; none when there is no such node. */
export async function currentChildren(zk: ZooKeeper, path: string): Promise<string[]> {
  const found = await ifExists(retryUnsent(() => zk.getChildren(path, { linearizable: true })))
  return found?.children ?? []
}

/** Containers vanish when they have had children and have none, so they are made whenever they are missed. */
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
