import { onAbort } from '../../../../abort-task.js'
import { AbortedError } from '../../../../errors.js'
import { checkOptions, checkSignal } from '../../../../options.js'
import type { Acl } from '../acl.js'
import type { Created } from '../calls.js'
import { ConnectionLossError, NodeExistsError, NoNodeError } from '../errors.js'
import { insist } from '../insist.js'
import type { CreateOptions } from '../calls.js'
import { settled } from '../settled.js'
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
 * @param folder '' for the root of all.
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
  let unseen: unknown
  const create = async (): Promise<string> => {
    const { path } = await createBelow(zk, `${folder}/${name}`, data, options)
    return path.slice(folder.length + 1)
  }
  const look = async (): Promise<{ answer: string } | undefined> => {
    const children = await childrenOf(zk, folder === '' ? '/' : folder).catch((why: unknown) => {
      throw (unseen = why)
    })
    const answer = children.find(child => child.startsWith(name))
    return answer === undefined ? undefined : { answer }
  }
  try {
    return await settled(create, look)
  } catch (error) {
    // An ephemeral node ends with the session that nobody can look with any more; others may be there.
    throw options.ephemeral && unseen ? unseen : error
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

/** What may still be done by work that nobody waits for any more. */
interface Behind<T> {
  /** Takes back what comes of it. */
  readonly undo?: (late: T) => Promise<unknown>
  /** Is told of all that is still done; that never rejects. */
  readonly left?: (over: Promise<unknown>) => void
}

/**
 * Works until a signal aborts: then it settles at once, even while no server is connected.
 * @throws AbortedError
 */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  path: string,
  work: () => Promise<T>,
  { undo, left }: Behind<T> = {},
): Promise<T> {
  if (!signal) return work()
  if (signal.aborted) throw abortedAt(path, signal)
  return new Promise((resolve, reject) => {
    const working = work()
    const forget = onAbort(signal, () => {
      const over = working.then(undo).catch(() => undefined)
      left?.(over)
      reject(abortedAt(path, signal))
    })
    const settled =
      <A>(settle: (outcome: A) => void) =>
      (outcome: A): void => {
        // First: what was handed out is not taken back any more.
        forget()
        settle(outcome)
      }
    working.then(settled(resolve), settled(reject))
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
