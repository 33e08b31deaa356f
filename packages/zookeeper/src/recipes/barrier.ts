import { ensureNode } from '../create-settled.js'
import { checkFolder } from '../paths.js'
import { deleteOwn, retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { signalOf, untilAborted, type RecipeOptions, type WaitOptions } from './waiting.js'

/** A node that makes callers wait for as long as it exists. It outlives the client that created it. */
export class Barrier {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #options: RecipeOptions

  constructor(zk: ZooKeeper, path: string, options: RecipeOptions = {}) {
    checkFolder(path)
    this.#zk = zk
    this.#path = path
    this.#options = options
  }

  /** Makes all callers of `wait` wait from now on. Does nothing if the barrier exists already. */
  async create(): Promise<void> {
    await ensureNode(this.#zk, this.#path, this.#options)
  }

  /** Ends all waits. Does nothing if the barrier does not exist. @throws SessionExpiredError, ClosedError */
  async remove(): Promise<void> {
    await deleteOwn(this.#zk, this.#path)
    // The end of the session must not count as success, because this node does not end with it.
    await retryUnsent(() => this.#zk.exists(this.#path))
  }

  /**
   * Waits until the barrier does not exist. Never misses a barrier that was created before the call.
   * @throws AbortedError; SessionExpiredError, ClosedError
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    const signal = signalOf(options)
    await untilAborted(signal, this.#path, () => this.#wait(signal))
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const observed = {
      path: this.#path,
      read: async () => (await this.#zk.exists(this.#path, { linearizable: true })) !== undefined,
      isSame: (one: boolean, other: boolean) => one === other,
    }
    await Observation.until(this.#zk, observed, signal, isThere => !isThere || undefined)
  }
}
