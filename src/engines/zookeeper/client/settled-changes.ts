import { randomUUID } from 'node:crypto'
import { NUMBERS, refusal } from './errors.js'
import type { CreateOptions } from './calls.js'
import { checkPath } from './paths.js'
import { createChild } from './recipes/steps.js'
import { settled } from './settled.js'
import type { Stat } from './stat.js'
import type { ZooKeeper } from './zookeeper.js'

/** Which node it was, and in which version, as a reading told. */
export type Seen = Pick<Stat, 'czxid' | 'version'>

/**
 * Creates a node once although answers get lost: its name begins with `_c_GUID-`, as Curator's protected nodes do, by which it
 * is found again. Containers above it are made where they are missing. Where somebody deletes it before it could be looked
 * for, it is created once more.
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
 * Writes data over what was read, once although answers get lost. After a lost answer the next version with the same data
 * counts as written; where others may write the same, put into it who wrote it.
 * @throws BadVersionError when somebody wrote or made the node anew before; ConnectionLossError when others wrote so much after a lost
 * answer that nobody can tell, and else as {@link settled}
 */
export async function setDataSettled(
  zk: ZooKeeper,
  path: string,
  data: string | Uint8Array,
  { czxid, version }: Seen,
): Promise<Stat> {
  const outcome = await settled<Stat | 'refused'>(
    () => zk.setData(path, data, version),
    async () => {
      const now = await zk.getData(path, { linearizable: true })
      const isNext = now.stat.czxid === czxid && now.stat.version === version + 1
      if (isNext) return { answer: now.data.equals(Buffer.from(data)) ? now.stat : 'refused' }
      if (now.stat.czxid === czxid && now.stat.version === version) return undefined
      throw new Error('it has been overwritten since')
    },
  )
  if (outcome === 'refused') throw refusal('setData', path, NUMBERS.badVersion)
  return outcome
}

/**
 * Deletes the node that was read, once although answers get lost: one that somebody has made anew since stays.
 * After a lost answer it is fine when somebody else has deleted it.
 * @throws BadVersionError when somebody has written to it; as {@link settled}
 */
export async function deleteSettled(zk: ZooKeeper, path: string, { czxid, version }: Seen): Promise<void> {
  await settled(
    () => zk.delete(path, version),
    async () => {
      const now = await zk.exists(path, { linearizable: true })
      return now?.czxid === czxid ? undefined : { answer: undefined }
    },
  )
}
