import {
  ClosedError,
  ConnectionLossError,
  NoNodeError,
  NotSentError,
  NUMBERS,
  refusal,
  SessionExpiredError,
} from './errors.js'
import type { Stat } from './stat.js'
import type { ZooKeeper } from './zookeeper.js'

/** Which node it was, and in which version, as a reading told. */
export type Seen = Pick<Stat, 'czxid' | 'version'>

/** Repeats a step while it was certainly not carried out, so that it waits for the next connection. */
export async function retryUnsent<T>(step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
    }
  }
}

/** The result of a read; undefined if there is no such node. */
export async function ifExists<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}

/**
 * Carries out a step until it is known what became of it: where the answer was lost, `look` finds out. While no server
 * is connected it waits, as long as the session lives.
 * @param look gives what stands for the answer when the step was carried out, and undefined when it was not: then it is
 * carried out again. It reads with `linearizable`, behind which what the lost connection had sent is applied, or never
 * will be.
 * @throws what the step throws; ConnectionLossError when it may have been carried out and looking fails, too, as it
 * does when the session has ended
 */
export async function settled<T>(
  step: () => Promise<T>,
  look: () => Promise<{ readonly answer: T } | undefined>,
): Promise<T> {
  for (;;) {
    try {
      return await retryUnsent(step)
    } catch (lost) {
      if (!(lost instanceof ConnectionLossError)) throw lost
      const found = await retryUnsent(look).catch(() => {
        throw lost
      })
      if (found) return found.answer
    }
  }
}

/**
 * Writes data over what was read, once although answers get lost. After a lost answer the next version with the same
 * data counts as written. Where other clients may write the same, put the writer's name into it.
 * @throws BadVersionError when another client wrote or made the node anew before; ConnectionLossError when so much was
 * written after a lost answer that it can't be told; else as {@link settled}
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
      throw new Error('it was overwritten meanwhile')
    },
  )
  if (outcome === 'refused') throw refusal('setData', path, NUMBERS.badVersion)
  return outcome
}

/**
 * Deletes the node that was read, once although answers get lost: a node that another client has made anew since stays.
 * After a lost answer it is fine when another client has deleted it.
 * @throws BadVersionError when another client has written to it; as {@link settled}
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

/**
 * Deletes a node of this session. Does nothing if the node is deleted already, or is deleted with the session that has
 * ended.
 */
export async function deleteOwn(zk: ZooKeeper, path: string): Promise<void> {
  for (;;) {
    try {
      await retryUnsent(() => zk.delete(path))
      return
    } catch (error) {
      if (error instanceof ConnectionLossError) continue
      if (error instanceof NoNodeError) return
      if (error instanceof SessionExpiredError || error instanceof ClosedError) return
      throw error
    }
  }
}
