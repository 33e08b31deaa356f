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

/** The parties that are present, and those of the last round. */
interface Standing {
  readonly present: readonly string[]
  /** The parties of the last round, as in the data of the parent. */
  readonly round: readonly string[]
  /** The version of that data. */
  readonly version: number
}

/**
 * Lets a number of parties begin together, and continue together when all have finished. Each is an ephemeral node. The
 * first party that sees all of them writes their names into the parent, which begins the round. So a party that is slow
 * to look still learns that it takes part, even if others have left already. The next round begins when all parties of
 * this one are gone, so rounds never mix. If there are more parties than needed, those that came first begin.
 */
export class DoubleBarrier {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #parties: number
  readonly #options: RecipeOptions

  /** @param parties number of parties that begin together, 1 or more. */
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
   * Waits until all parties have come. A party that dies or gives up before that does not count; after that, it has
   * left.
   * @throws AbortedError, and leaves nothing behind: its node is deleted before the same client enters again;
   * SessionExpiredError, ClosedError; NodeDeletedError if another client deleted its node; UnexpectedDataError if the
   * parent has other data
   */
  async enter(options: WaitOptions = {}): Promise<Round> {
    const signal = signalOf(options)
    return untilAborted(signal, this.#path, () => this.#enterOnce(signal), {
      undo: ({ party }) => deleteOwn(this.#zk, `${this.#path}/${party}`),
      onDone: done => trackLeaving(done, this.#zk, this.#path),
    })
  }

  /**
   * Enters once the nodes that this client gave up before are deleted: two nodes of one party would count as two
   * parties.
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
        // If it was applied, the next attempt finds the version that it has created.
        if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  /** Reads the round first, so the list of present parties is at least as new. */
  async #read(): Promise<Standing> {
    const reading = Promise.all([this.#zk.getData(this.#path), currentChildren(this.#zk, this.#path)])
    const found = await ifExists(reading)
    // The parent is missing, so this party's node is gone, too.
    if (!found) return { present: [], round: [], version: -1 }
    const [{ data, stat }, present] = found
    return { present: present.sort(bySequence), round: this.#roundOf(data.toString()), version: stat.version }
  }

  #roundOf(text: string): readonly string[] {
    try {
      const round: unknown = JSON.parse(text || '[]')
      if (Array.isArray(round) && round.every(party => typeof party === 'string')) return round
    } catch {
      // Reported below.
    }
    throw new UnexpectedDataError(`${this.#path} is not the node of a double barrier`, { path: this.#path })
  }
}

/** Promises that resolve when the nodes of parties that gave up are deleted, by path. */
const leavings = new WeakMap<ZooKeeper, Map<string, Promise<unknown>>>()

function trackLeaving(done: Promise<unknown>, zk: ZooKeeper, path: string): void {
  const byPath = leavings.get(zk) ?? new Map<string, Promise<unknown>>()
  leavings.set(zk, byPath)
  const all = Promise.all([byPath.get(path), done]).then(() => {
    if (byPath.get(path) === all) byPath.delete(path)
  })
  byPath.set(path, all)
}

/** A round of a double barrier, between its two sides. */
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
   * Reports that this party has finished, and waits until all have, or have died.
   * @throws AbortedError; SessionExpiredError, ClosedError; this party has left by then, or leaves as soon as a server
   * is connected
   */
  async leave(options: WaitOptions = {}): Promise<void> {
    const signal = signalOf(options)
    const left = deleteOwn(this.#zk, `${this.#path}/${this.party}`)
    // A caller that aborts does not get this error.
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
