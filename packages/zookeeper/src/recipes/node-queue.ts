import { randomUUID } from 'node:crypto'
import { currentChildren, createChild } from '../create-settled.js'
import { ConnectionLossError, NodeDeletedError } from '../errors.js'
import { bySequence, checkFolder } from '../paths.js'
import { deleteOwn, ifExists, retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { signalOf, untilAborted, type RecipeOptions, type WaitOptions } from './waiting.js'

const MESSAGE = 'message-'
const CLAIM = 'claim-'

/**
 * A queue of messages between processes. A message belongs to the client that takes it for as long as its session
 * lives, or until it is done. If it is not done, another client takes it again. So each message is processed at least
 * once, and messages are taken in the order in which they were put. The queue is for hundreds of messages at a time,
 * not for hundreds of thousands, because each waiter reads the list of all.
 */
export class NodeQueue {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #options: RecipeOptions

  /** @param path the node below which the messages are; it is created as a container by the first of them. */
  constructor(zk: ZooKeeper, path: string, options: RecipeOptions = {}) {
    checkFolder(path)
    this.#zk = zk
    this.#path = path
    this.#options = options
  }

  /**
   * Adds a message to the end; it stays when the session ends.
   * @param data less than 1 MiB, like the data of any node.
   * @returns its ID. If the connection was lost, and the message was taken before it could be looked for, it is put
   * once more with the same ID.
   * @throws ConnectionLossError if the session ended and the message may exist; SessionExpiredError, ClosedError;
   * RefusedError
   */
  async put(data: string | Uint8Array): Promise<string> {
    const id = randomUUID()
    await createChild(this.#zk, this.#path, `${MESSAGE}${id}-`, data, { sequential: true, ...this.#options })
    return id
  }

  /** Takes the first free message; undefined if there is none. */
  async tryTake(): Promise<TakenMessage | undefined> {
    return this.#takeOneOf(await currentChildren(this.#zk, this.#path))
  }

  /**
   * Takes the first free message, and waits until there is one.
   * @throws AbortedError; SessionExpiredError, ClosedError
   */
  async take(options: WaitOptions = {}): Promise<TakenMessage> {
    const signal = signalOf(options)
    return untilAborted(signal, this.#path, () => this.#take(signal), { undo: taken => taken.release() })
  }

  async #take(signal: AbortSignal | undefined): Promise<TakenMessage> {
    const first = await this.tryTake()
    if (first) return first
    const observed = {
      path: this.#path,
      read: () => currentChildren(this.#zk, this.#path),
      isSame: haveSameNames,
    }
    return Observation.until(this.#zk, observed, signal, names => this.#takeOneOf(names))
  }

  async #takeOneOf(children: readonly string[]): Promise<TakenMessage | undefined> {
    const claimed = new Set(
      children.filter(name => name.startsWith(CLAIM)).map(name => name.slice(CLAIM.length)),
    )
    const free = children.filter(name => name.startsWith(MESSAGE) && !claimed.has(name)).sort(bySequence)
    for (const name of free) {
      const taken = await this.#claim(name)
      if (taken) return taken
    }
    return undefined
  }

  async #claim(name: string): Promise<TakenMessage | undefined> {
    const message = `${this.#path}/${name}`
    const claim = `${this.#path}/${CLAIM}${name}`
    const own = randomUUID()
    for (;;) {
      try {
        const claiming = this.#zk
          .transaction()
          .check(message)
          .create(claim, own, { ephemeral: true, ...this.#options })
        const { done } = await retryUnsent(() => claiming.outcome())
        if (!done) return undefined
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error
        if (!(await this.#isOwn(claim, own))) continue
      }
      return this.#read(message, claim)
    }
  }

  /** Undefined if the message was deleted by hand. */
  async #read(message: string, claim: string): Promise<TakenMessage | undefined> {
    let found: { data: Buffer } | undefined
    try {
      found = await ifExists(retryUnsent(() => this.#zk.getData(message)))
    } finally {
      if (!found) await deleteOwn(this.#zk, claim)
    }
    return found && new TakenMessage(this.#zk, message, claim, found.data)
  }

  async #isOwn(claim: string, own: string): Promise<boolean> {
    const found = await ifExists(retryUnsent(() => this.#zk.getData(claim, { linearizable: true })))
    return found?.data.toString() === own
  }
}

/** A message that belongs to this client as long as the session lives. */
export class TakenMessage {
  /** The same each time that the message is taken. */
  readonly id: string
  readonly data: Buffer
  readonly #zk: ZooKeeper
  readonly #message: string
  readonly #claim: string

  constructor(zk: ZooKeeper, message: string, claim: string, data: Buffer) {
    this.id = message.slice(message.lastIndexOf('/') + 1 + MESSAGE.length).replace(/--?\d{10}$/, '')
    this.data = data
    this.#zk = zk
    this.#message = message
    this.#claim = claim
  }

  /**
   * Removes the message for good.
   * @throws SessionExpiredError, ClosedError, or NodeDeletedError if its claim was deleted, so that another client may
   * have it; ConnectionLossError if the session ended and it may have been removed
   */
  async done(): Promise<void> {
    const removal = this.#zk.transaction().delete(this.#message).delete(this.#claim)
    for (let lost: ConnectionLossError | undefined; ;) {
      try {
        const outcome = await retryUnsent(() => removal.outcome())
        // The message is deleted only together with the claim, so after a lost reply this is the second attempt.
        if (outcome.done || outcome.index === 0) return
        throw new NodeDeletedError(`${this.#claim} was deleted: ${outcome.error.message}`, {
          path: this.#claim,
        })
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw lost ?? error
        lost = error
      }
    }
  }

  /** Leaves the message for the next taker. Does nothing if the session has ended. */
  release(): Promise<void> {
    return deleteOwn(this.#zk, this.#claim)
  }
}

function haveSameNames(one: readonly string[], other: readonly string[]): boolean {
  const names = new Set(one)
  return one.length === other.length && other.every(name => names.has(name))
}
