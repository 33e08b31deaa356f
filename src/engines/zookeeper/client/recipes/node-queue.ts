import { randomUUID } from 'node:crypto'
import { LostError } from '../../../../errors.js'
import { deleteOwn } from '../delete-own.js'
import { ConnectionLossError, NoNodeError } from '../errors.js'
import { checkFolder } from '../paths.js'
import { insist } from '../insist.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { bySequence } from './sequence.js'
import {
  childrenOf,
  createChild,
  haveSameNames,
  signalOf,
  untilAborted,
  type RecipeOptions,
  type WaitOptions,
} from './steps.js'

const MESSAGE = 'message-'
const CLAIM = 'claim-'

/**
 * A queue of messages between nodes: whoever takes a message has it alone as long as its session lives, and says when it is
 * done; what was not done is taken again by somebody else. So each message is done at least once, and taken in the order in
 * which they were put. It is meant for hundreds of messages at a time, not for hundreds of thousands: whoever waits reads the
 * list of all.
 */
export class NodeQueue {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #options: RecipeOptions

  /** @param path the node below which the messages are; it is made, as a container, by the first of them. */
  constructor(zk: ZooKeeper, path: string, options: RecipeOptions = {}) {
    checkFolder(path)
    this.#zk = zk
    this.#path = path
    this.#options = options
  }

  /**
   * Adds a message to the end; it stays when the session ends.
   * @param data a message takes so much as a node: less than 1 MiB.
   * @returns its id. Where the connection was lost and the message taken before it could be looked for, it is put once
   * more with the same id.
   * @throws ConnectionLossError, when the session ended and it may be there; SessionExpiredError, ClosedError; RefusedError
   */
  async put(data: string | Uint8Array): Promise<string> {
    const id = randomUUID()
    await createChild(this.#zk, this.#path, `${MESSAGE}${id}-`, data, { sequential: true, ...this.#options })
    return id
  }

  /** Takes the first message that nobody has; undefined when there is none. */
  async tryTake(): Promise<TakenMessage | undefined> {
    return this.#takeOneOf(await childrenOf(this.#zk, this.#path))
  }

  /** Takes the first message that nobody has, and waits for one. @throws AbortedError; SessionExpiredError, ClosedError */
  async take(options: WaitOptions = {}): Promise<TakenMessage> {
    const signal = signalOf(options)
    return untilAborted(signal, this.#path, () => this.#take(signal), { undo: taken => taken.giveBack() })
  }

  async #take(signal: AbortSignal | undefined): Promise<TakenMessage> {
    const first = await this.tryTake()
    if (first) return first
    await using observation = await Observation.start(this.#zk, {
      path: this.#path,
      read: () => childrenOf(this.#zk, this.#path),
      isSame: haveSameNames,
    })
    for (let { reading } = observation; ; reading = await observation.after(reading, signal)) {
      const taken = await this.#takeOneOf(reading.value)
      if (taken) return taken
    }
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
        const { done } = await insist(() => claiming.outcome())
        if (!done) return undefined
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error
        if (!(await this.#isOwn(claim, own))) continue
      }
      return this.#read(message, claim)
    }
  }

  /** Undefined when somebody deleted the message by hand. */
  async #read(message: string, claim: string): Promise<TakenMessage | undefined> {
    try {
      const { data } = await insist(() => this.#zk.getData(message))
      return new TakenMessage(this.#zk, message, claim, data)
    } catch (error) {
      await deleteOwn(this.#zk, claim)
      if (error instanceof NoNodeError) return undefined
      throw error
    }
  }

  async #isOwn(claim: string, own: string): Promise<boolean> {
    try {
      const { data } = await insist(() => this.#zk.getData(claim, { linearizable: true }))
      return data.toString() === own
    } catch (error) {
      if (error instanceof NoNodeError) return false
      throw error
    }
  }
}

/** A message that nobody else has, as long as the session lives. */
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
   * @throws SessionExpiredError, ClosedError, or LostError when its claim was deleted: others may have it then.
   * ConnectionLossError, when the session ended and it may be removed
   */
  async done(): Promise<void> {
    const removal = this.#zk.transaction().delete(this.#message).delete(this.#claim)
    for (let lost: ConnectionLossError | undefined; ;) {
      try {
        const outcome = await insist(() => removal.outcome())
        // The message goes only with the claim: after a lost answer this is the second time.
        if (outcome.done || outcome.index === 0) return
        throw new LostError(`${this.#claim} was deleted: ${outcome.error.message}`, { key: this.#message })
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw lost ?? error
        lost = error
      }
    }
  }

  /** Leaves the message to whoever takes it next; fine when the session has ended. */
  giveBack(): Promise<void> {
    return deleteOwn(this.#zk, this.#claim)
  }
}
