import { randomUUID } from 'node:crypto'
import { createChild, currentChildren } from '../create-settled.js'
import {
  BadVersionError,
  ConnectionLossError,
  InvalidArgumentError,
  NodeDeletedError,
  shown,
  UnexpectedDataError,
} from '../errors.js'
import { bySequence, checkFolder } from '../paths.js'
import { deleteOwn, ifExists, retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { abortedAt, signalOf, untilAborted, type RecipeOptions, type WaitOptions } from './waiting.js'

/** The parties that are there, and those that began the last round. */
interface Standing {
  readonly present: readonly string[]
  /** The parties of the last round, as the data of the parent names them. */
  readonly round: readonly string[]
  /** The version of that data. */
  readonly version: number
}

/**
 * Lets a number of parties begin together, and go on together when all have finished. Each is an ephemeral node. The
 * first party that sees all of them writes their names into the parent, and that begins the round. So a party that is
 * slow to look still finds that it takes part, although others have left already. The next round never mixes with this
 * one: it begins when all parties of this one are gone. Of more parties than are wanted, those that came first begin.
 */
export class DoubleBarrier {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #parties: number
  readonly #options: RecipeOptions

  /** @param parties how many begin together, from 1 on. */
  constructor(zk: ZooKeeper, path: string, parties: number, options: RecipeOptions = {}) {
    checkFolder(path)
    if (!Number.isSafeInteger(parties) || parties < 1)
      throw new InvalidArgumentError(`parties must be a whole number, 1 or more, not ${shown(parties)}`)
    this.#zk = zk
    this.#path = path
    this.#parties = parties
    this.#options = options
  }

  /**
   * Waits until all have come. A party that dies or gives up before that does not count; after that, it has left.
   * @throws AbortedError, and nothing stays behind: its node goes before the same client enters again;
   * SessionExpiredError, ClosedError; NodeDeletedError if another client deleted its node; UnexpectedDataError if
   * the node holds something else
   */
  async enter(options: WaitOptions = {}): Promise<Round> {
    const signal = signalOf(options)
    return untilAborted(signal, this.#path, () => this.#enterOnce(signal), {
      undo: ({ party }) => deleteOwn(this.#zk, `${this.#path}/${party}`),
      left: over => leavesUntil(over, this.#zk, this.#path),
    })
  }

  /**
   * Enters when the nodes that this client gave up before are gone: two nodes of one party would count as two parties.
   */
  async #enterOnce(signal: AbortSignal | undefined): Promise<Round> {
    await leavings.get(this.#zk)?.get(this.#path)
    if (signal?.aborted) throw abortedAt(this.#path, signal)
    return this.#enter(signal)
  }

  async #enter(signal: AbortSignal | undefined): Promise<Round> {
    const options = { ephemeral: true, sequential: true, ...this.#options }
    const own = await createChild(this.#zk, this.#path, `${randomUUID()}-`, '', options)
    try {
      return await this.#begin(own, signal)
    } catch (error) {
      await deleteOwn(this.#zk, `${this.#path}/${own}`)
      throw error
    }
  }

  async #begin(own: string, signal: AbortSignal | undefined): Promise<Round> {
    const observed = {
      path: this.#path,
      read: () => this.#read(),
      isSame: (one: Standing, other: Standing) =>
        one.version === other.version && one.present.join() === other.present.join(),
    }
    return Observation.until(this.#zk, observed, signal, async ({ present, round, version }) => {
      if (round.includes(own)) return new Round(this.#zk, this.#path, own, round)
      if (!present.includes(own)) {
        const path = `${this.#path}/${own}`
        throw new NodeDeletedError(`${path} was deleted`, { path })
      }
      const isFree = !round.some(party => present.includes(party))
      if (isFree && present.length >= this.#parties)
        await this.#beginRound(present.slice(0, this.#parties), version)
      return undefined
    })
  }

  /** Writes the names of the parties, unless another party has done so. */
  async #beginRound(parties: readonly string[], version: number): Promise<void> {
    for (;;) {
      try {
        await retryUnsent(() => this.#zk.setData(this.#path, JSON.stringify(parties), version))
        return
      } catch (error) {
        if (error instanceof BadVersionError) return
        // If it was carried out, the next attempt finds the version that it has made.
        if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  /** The round is read first, so the list of the parties that are present is at least as new. */
  async #read(): Promise<Standing> {
    const reading = Promise.all([this.#zk.getData(this.#path), currentChildren(this.#zk, this.#path)])
    const found = await ifExists(reading)
    // Then this party's node is gone, too.
    if (!found) return { present: [], round: [], version: -1 }
    const [{ data, stat }, present] = found
    return { present: present.sort(bySequence), round: this.#roundOf(data.toString()), version: stat.version }
  }

  #roundOf(text: string): readonly string[] {
    try {
      const round: unknown = JSON.parse(text || '[]')
      if (Array.isArray(round) && round.every(party => typeof party === 'string')) return round
    } catch {
      // The error below tells it.
    }
    throw new UnexpectedDataError(`${this.#path} is not the node of a double barrier`, { path: this.#path })
  }
}

/** Settle when the nodes are gone of parties that have given up at a path. */
const leavings = new WeakMap<ZooKeeper, Map<string, Promise<unknown>>>()

function leavesUntil(over: Promise<unknown>, zk: ZooKeeper, path: string): void {
  const byPath = leavings.get(zk) ?? new Map<string, Promise<unknown>>()
  leavings.set(zk, byPath)
  const all = Promise.all([byPath.get(path), over]).then(() => {
    if (byPath.get(path) === all) byPath.delete(path)
  })
  byPath.set(path, all)
}

/** What the parties of a double barrier do between its two sides. */
export class Round {
  /** The names of all parties, in the order in which they came. */
  readonly parties: readonly string[]
  /** The name of this party. */
  readonly party: string
  readonly #zk: ZooKeeper
  readonly #path: string

  constructor(zk: ZooKeeper, path: string, party: string, parties: readonly string[]) {
    this.#zk = zk
    this.#path = path
    this.party = party
    this.parties = parties
  }

  /**
   * Says that this party has finished, and waits until all have, or have died.
   * @throws AbortedError; SessionExpiredError, ClosedError; it has left then, or does as soon as a server is there
   */
  async leave(options: WaitOptions = {}): Promise<void> {
    const signal = signalOf(options)
    const left = deleteOwn(this.#zk, `${this.#path}/${this.party}`)
    // A caller that aborts does not hear of an error.
    left.catch(() => undefined)
    await untilAborted(signal, this.#path, () => this.#othersLeft(left, signal))
  }

  async #othersLeft(left: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    await left
    const observed = {
      path: this.#path,
      read: async () => {
        const present = await currentChildren(this.#zk, this.#path)
        return this.parties.filter(party => present.includes(party)).length
      },
      isSame: (one: number, other: number) => one === other,
    }
    await Observation.until(this.#zk, observed, signal, count => count === 0 || undefined)
  }
}
