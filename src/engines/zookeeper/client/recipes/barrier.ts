import { deleteOwn } from '../delete-own.js'
import { ConnectionLossError, NodeExistsError } from '../errors.js'
import { checkFolder } from '../paths.js'
import { insist } from '../insist.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { createBelow, signalOf, untilAborted, type RecipeOptions, type WaitOptions } from './steps.js'

/** A node that keeps all who come waiting, as long as it is there. It outlives whoever created it. */
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

  /** Keeps from now on all waiting; fine when that is so already. */
  async create(): Promise<void> {
    for (;;) {
      try {
        await createBelow(this.#zk, this.#path, '', this.#options)
        return
      } catch (error) {
        if (error instanceof NodeExistsError) return
        if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  /** Lets all go on; fine when it is gone already. @throws SessionExpiredError, ClosedError */
  async remove(): Promise<void> {
    await deleteOwn(this.#zk, this.#path)
    // What ended the session is no success: this node does not go with it.
    await insist(() => this.#zk.exists(this.#path))
  }

  /**
   * Waits until the barrier is not there. A barrier that was created before the call is never overlooked.
   * @throws AbortedError; SessionExpiredError, ClosedError
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    const signal = signalOf(options)
    await untilAborted(signal, this.#path, () => this.#wait(signal))
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    await using observation = await Observation.start(this.#zk, {
      path: this.#path,
      read: async () => (await this.#zk.exists(this.#path, { linearizable: true })) !== undefined,
      isSame: (one, other) => one === other,
    })
    let { reading } = observation
    while (reading.value) reading = await observation.after(reading, signal)
  }
}
