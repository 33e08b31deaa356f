import { randomUUID } from 'node:crypto'
import { ConflictError, InvalidArgumentError, LostError, shown } from '../../../../errors.js'
import { deleteOwn } from '../delete-own.js'
import { BadVersionError, ConnectionLossError, NoNodeError } from '../errors.js'
import { checkFolder } from '../paths.js'
import { insist } from '../insist.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import { bySequence } from './sequence.js'
import {
  abortedAt,
  childrenOf,
  createChild,
  signalOf,
  untilAborted,
  type RecipeOptions,
  type WaitOptions,
} from './steps.js'

/** Who is there, and who began together the last time. */
interface Standing {
  readonly present: readonly string[]
  /** The parties of the last round, as the data of the parent names them. */
  readonly round: readonly string[]
  /** The version of that data. */
  readonly version: number
}

/**
 * Lets a number of parties begin together, and go on together when all have finished. Each is an ephemeral node; the
 * first who sees all of them writes their names into the parent, and that begins the round. So whoever is slow to look still
 * finds that it is in, although others have left already, and the next round never mixes with this one: it begins when all
 * parties of this one are gone. Of more parties than are wanted, those that came first begin.
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
      throw new InvalidArgumentError(`parties takes a whole number from 1 on, not ${shown(parties)}`)
    this.#zk = zk
    this.#path = path
    this.#parties = parties
    this.#options = options
  }

  /**
   * Waits until all have come. A party that dies or gives up before that does not count; after that, it has left.
   * @throws AbortedError, and nothing stays behind: its node goes before the same client enters again;
   * SessionExpiredError, ClosedError; LostError when somebody deleted its node; ConflictError when the node holds something
   * else
   */
  async enter(options: WaitOptions = {}): Promise<Round> {
    const signal = signalOf(options)
    return untilAborted(signal, this.#path, () => this.#enterOnce(signal), {
      undo: ({ party }) => deleteOwn(this.#zk, `${this.#path}/${party}`),
      left: over => leavesUntil(over, this.#zk, this.#path),
    })
  }

  /** Enters when what was given up before at this client is gone: two nodes of one party would count as two parties. */
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
    await using observation = await Observation.start(this.#zk, {
      path: this.#path,
      read: () => this.#read(),
      isSame: (one, other) => one.version === other.version && one.present.join() === other.present.join(),
    })
    for (let { reading } = observation; ;) {
      const { present, round, version } = reading.value
      if (round.includes(own)) return new Round(this.#zk, this.#path, own, round)
      if (!present.includes(own)) throw new LostError(`${this.#path}/${own} was deleted`, { key: this.#path })
      const isFree = !round.some(party => present.includes(party))
      if (isFree && present.length >= this.#parties) {
        const next = JSON.stringify(present.slice(0, this.#parties))
        try {
          await insist(() => this.#zk.setData(this.#path, next, version))
        } catch (error) {
          // Sent again, it can at the worst find the version that it has made itself.
          if (error instanceof ConnectionLossError) continue
          if (!(error instanceof BadVersionError)) throw error
        }
      }
      reading = await observation.after(reading, signal)
    }
  }

  /** The round comes first: who is present is then at least as new. */
  async #read(): Promise<Standing> {
    const reading = Promise.all([this.#zk.getData(this.#path), childrenOf(this.#zk, this.#path)])
    const found = await reading.catch((error: unknown) => {
      if (error instanceof NoNodeError) return undefined
      throw error
    })
    // Then the own node is gone, too.
    if (!found) return { present: [], round: [], version: -1 }
    const [{ data, stat }, present] = found
    return { present: present.sort(bySequence), round: this.#roundOf(data.toString()), version: stat.version }
  }

  #roundOf(text: string): readonly string[] {
    try {
      const round: unknown = JSON.parse(text || '[]')
      if (Array.isArray(round) && round.every(party => typeof party === 'string')) return round
    } catch {
      // It is told below.
    }
    throw new ConflictError(`${this.#path} holds something else than a double barrier`, { key: this.#path })
  }
}

/** Settle when what parties have given up at a path is gone. */
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
  /** Their names, in the order in which they came. */
  readonly parties: readonly string[]
  /** The own one. */
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
    // Whoever does not wait for the others does not hear of it.
    left.catch(() => undefined)
    await untilAborted(signal, this.#path, () => this.#othersLeft(left, signal))
  }

  async #othersLeft(left: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    await left
    await using observation = await Observation.start(this.#zk, {
      path: this.#path,
      read: async () => {
        const present = await childrenOf(this.#zk, this.#path)
        return this.parties.filter(party => present.includes(party)).length
      },
      isSame: (one, other) => one === other,
    })
    let { reading } = observation
    while (reading.value > 0) reading = await observation.after(reading, signal)
  }
}
