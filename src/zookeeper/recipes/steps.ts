import { onAbort } from '../../abort-task.js'
import { AbortedError, ClosedError, LostError } from '../../errors.js'
import { checkOptions, checkSignal } from '../../locks/lock-options.js'
import type { Acl } from '../acl.js'
import type { Created } from '../calls.js'
import { ConnectionLossError, NodeExistsError, NoNodeError, NotSentError } from '../errors.js'
import type { CreateOptions } from '../node-kind.js'
import type { ZooKeeper } from '../zookeeper.js'

/** How a recipe makes its nodes. */
export interface RecipeOptions {
  /** Who may do what with them; default: everybody everything. */
  readonly acl?: readonly Acl[]
}

/** How long a recipe waits. */
export interface WaitOptions {
  /** Ends the wait, which then leaves nothing behind. */
  readonly signal?: AbortSignal
}

/** @throws InvalidArgumentError when the options or the signal are none */
export function signalOf(options: WaitOptions): AbortSignal | undefined {
  checkOptions(options, ['signal'])
  checkSignal(options.signal)
  return options.signal
}

/** Carries out a step as often as it was certainly not carried out: a suspension only takes time. */
export async function insist<T>(step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
    }
  }
}

/** Creates a node, and the containers above it where they are missing. */
export async function createBelow(
  zk: ZooKeeper,
  path: string,
  data: string | Uint8Array,
  options: CreateOptions,
): Promise<Created> {
  for (;;) {
    try {
      return await insist(() => zk.create(path, data, options))
    } catch (error) {
      if (!(error instanceof NoNodeError) || path === '/') throw error
      await createContainer(zk, parentOf(path), options.acl)
    }
  }
}

/**
 * Creates a child exactly once, although answers get lost.
 * @param name nobody else's, so that it is found again.
 * @returns its name, with the number if it is sequential
 */
export async function createChild(
  zk: ZooKeeper,
  folder: string,
  name: string,
  data: string | Uint8Array,
  options: CreateOptions,
): Promise<string> {
  for (;;) {
    try {
      const { path } = await createBelow(zk, `${folder}/${name}`, data, options)
      return path.slice(folder.length + 1)
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error
      // Behind the sync, what the lost connection had sent is applied, or never will be.
      const children = await childrenOf(zk, folder).catch((why: unknown) => {
        // An ephemeral node ends with the session that nobody can look with any more; others may be there.
        throw options.ephemeral ? why : error
      })
      const found = children.find(child => child.startsWith(name))
      if (found !== undefined) return found
    }
  }
}

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

/** The names of the children as they are by now; none when there is no such node. */
export async function childrenOf(zk: ZooKeeper, path: string): Promise<string[]> {
  try {
    return (await insist(() => zk.getChildren(path, { linearizable: true }))).children
  } catch (error) {
    if (error instanceof NoNodeError) return []
    throw error
  }
}

/** Whether both have the same names. */
export function haveSameNames(one: readonly string[], other: readonly string[]): boolean {
  const names = new Set(one)
  return one.length === other.length && other.every(name => names.has(name))
}

/**
 * Works until a signal aborts: then it settles at once, even while no server is connected.
 * @param undo is called with what comes of the work after that.
 * @throws AbortedError
 */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  path: string,
  work: () => Promise<T>,
  undo: (late: T) => Promise<unknown>,
): Promise<T> {
  if (!signal) return work()
  const aborted = (): AbortedError => abortedAt(path, signal)
  if (signal.aborted) throw aborted()
  return new Promise((resolve, reject) => {
    let isOver = false
    const forget = onAbort(signal, () => {
      isOver = true
      reject(aborted())
    })
    const finish = (settle: () => void): void => {
      forget()
      settle()
    }
    work().then(
      value => {
        if (isOver) undo(value).catch(() => undefined)
        else finish(() => resolve(value))
      },
      (error: unknown) => finish(() => reject(error)),
    )
  })
}

/** What a wait ends with when its signal aborts. */
export function abortedAt(path: string, signal: AbortSignal): AbortedError {
  return new AbortedError(`the wait at ${path} was aborted`, { key: path, cause: signal.reason })
}

/** Containers vanish when they have had children and have none, so they are made whenever they are missed. */
async function createContainer(zk: ZooKeeper, path: string, acl: readonly Acl[] | undefined): Promise<void> {
  try {
    await createBelow(zk, path, '', { container: true, ...(acl && { acl }) })
  } catch (error) {
    if (!(error instanceof NodeExistsError) && !(error instanceof ConnectionLossError)) throw error
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 1))
}
