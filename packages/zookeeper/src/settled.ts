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

/** Identifies a node and its version, as read before. */
export type Seen = Pick<Stat, 'czxid' | 'version'>

/** Repeats a step while it was certainly not applied, so that it waits for the next connection. */
export async function retryUnsent<T>(step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
    }
  }
}

/** Returns the result of a read; undefined if the node does not exist. */
export async function ifExists<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}

/**
 * Executes a step until its outcome is known: if the reply was lost, `look` finds out. While no server is connected,
 * waits as long as the session lives.
 * @param look returns the equivalent of the reply if the step was applied, and undefined if it was not; then the step
 * is executed again. It must read with `linearizable`: requests of the lost connection are applied before that, or
 * never.
 * @throws the errors of the step; ConnectionLossError if it may have been applied and `look` fails, too, for example
 * because the session has ended
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
 * Overwrites the data that was read, exactly once even if replies get lost. After a lost reply, the next version with
 * the same data counts as written by this call. If other clients may write the same data, put the writer's name into
 * it.
 * @throws BadVersionError if another client has written or recreated the node before; ConnectionLossError if so much
 * was written after a lost reply that the outcome is unknown; else like {@link settled}
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
      throw new Error('it was overwritten in the meantime')
    },
  )
  if (outcome === 'refused') throw refusal('setData', path, NUMBERS.badVersion)
  return outcome
}

/**
 * Deletes the node that was read, exactly once even if replies get lost: a node that another client has recreated since
 * stays. After a lost reply, a deletion by another client counts, too.
 * @throws BadVersionError if another client has written to it; else like {@link settled}
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

/** Deletes a node of this session. Does nothing if the node was deleted already, also because the session has ended. */
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
