import { randomUUID } from 'node:crypto'
import { InvalidArgumentError, shown } from '../errors.js'
import { currentChildren, createChild } from '../create-settled.js'
import { checkFolder } from '../paths.js'
import { deleteOwn, ifExists, retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'
import type { RecipeOptions } from './waiting.js'

/** A member of a group. */
export interface Member {
  /** Different each time that a client joins. */
  readonly id: string
  readonly name: string
  /** Any data, such as its address. */
  readonly data: Buffer
}

/** The changes in a group since the last reading. */
export interface GroupChange {
  /** All members, in the order in which they joined. */
  readonly members: readonly Member[]
  readonly joined: readonly Member[]
  readonly left: readonly Member[]
}

/** A member, and the transaction by which it joined. */
interface Joined {
  readonly member: Member
  readonly czxid: bigint
}

/** By the names of their nodes, in the order in which they joined. */
type Members = ReadonlyMap<string, Joined>

/**
 * A list of members. Each is an ephemeral node below one node, named `ID-NAME` like those of kazoo's `ShallowParty`. A
 * member is in the group until it leaves or its session ends. A suspended session changes nothing.
 */
export class Group {
  readonly #zk: ZooKeeper
  readonly #path: string
  readonly #options: RecipeOptions

  /** @param path the node below which the members are; it is created as a container when a member joins. */
  constructor(zk: ZooKeeper, path: string, options: RecipeOptions = {}) {
    checkFolder(path)
    this.#zk = zk
    this.#path = path
    this.#options = options
  }

  /**
   * Becomes a member.
   * @param name need not be unique.
   * @throws RefusedError; SessionExpiredError, ClosedError
   */
  async join(name: string, data: string | Uint8Array = ''): Promise<Membership> {
    const id = randomUUID().replaceAll('-', '')
    const node = `${id}-${encodedName(name)}`
    await createChild(this.#zk, this.#path, node, data, { ephemeral: true, ...this.#options })
    return new Membership(this.#zk, `${this.#path}/${node}`, { id, name, data: Buffer.from(data) })
  }

  /** Returns all current members, in the order in which they joined. */
  async members(): Promise<readonly Member[]> {
    return membersOf(await this.#read(new Map()))
  }

  /** Follows the members as they join and leave. */
  async watch(): Promise<GroupView> {
    let known: Members = new Map()
    const observation = await Observation.start<Members>(this.#zk, {
      path: this.#path,
      read: async () => (known = await this.#read(known)),
      isSame: (one, other) => one.size === other.size && [...one.keys()].every(node => other.has(node)),
    })
    return new GroupView(observation)
  }

  /** Reads the members. Known members are not read again, because members don't change. */
  async #read(known: Members): Promise<Members> {
    const nodes = await currentChildren(this.#zk, this.#path)
    const found = await Promise.all(nodes.map(async node => [node, await this.#member(node, known)] as const))
    const there = found.filter((each): each is [string, Joined] => each[1] !== undefined)
    return new Map(there.sort(([, one], [, other]) => (one.czxid < other.czxid ? -1 : 1)))
  }

  async #member(node: string, known: Members): Promise<Joined | undefined> {
    const before = known.get(node)
    if (before) return before
    const found = await ifExists(retryUnsent(() => this.#zk.getData(`${this.#path}/${node}`)))
    // It has left in the meantime.
    if (!found) return undefined
    const [, id, name] = /^([^-]*)-(.*)$/s.exec(node) ?? [node, node, '']
    return { member: { id, name: decodedName(name), data: found.data }, czxid: found.stat.czxid }
  }
}

/** A membership, which lasts until the member leaves or the session ends. */
export class Membership implements AsyncDisposable {
  readonly member: Member
  readonly #zk: ZooKeeper
  readonly #path: string

  constructor(zk: ZooKeeper, path: string, member: Member) {
    this.#zk = zk
    this.#path = path
    this.member = member
  }

  /** Leaves the group. Does nothing if the session, and the membership with it, has ended. */
  leave(): Promise<void> {
    return deleteOwn(this.#zk, this.#path)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave()
  }
}

/** A view of a group. After the end of the session, every use throws the error that ended it. */
export class GroupView implements AsyncDisposable, AsyncIterable<GroupChange> {
  readonly #observation: Observation<Members>

  constructor(observation: Observation<Members>) {
    this.#observation = observation
  }

  /** The members at the last reading, in the order in which they joined. @throws the error that ended the view */
  get members(): readonly Member[] {
    return membersOf(this.#observation.value)
  }

  /**
   * Yields all members as joined first, then the changes; several at once if they come fast. Ends when the view is
   * closed.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<GroupChange, undefined> {
    let before: Members = new Map()
    for await (const now of this.#observation.readings()) {
      const joined = membersOf(now, node => !before.has(node))
      const left = membersOf(before, node => !now.has(node))
      before = now
      yield { members: membersOf(now), joined, left }
    }
    return undefined
  }

  /** Stops following, and ends the loops over it. */
  close(): Promise<void> {
    return this.#observation.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function membersOf(members: Members, isWanted: (node: string) => boolean = () => true): Member[] {
  return [...members].filter(([node]) => isWanted(node)).map(([, { member }]) => member)
}

function encodedName(name: unknown): string {
  try {
    if (typeof name === 'string') return encodeURIComponent(name)
  } catch {
    // Half of a surrogate pair.
  }
  throw new InvalidArgumentError(`name must be a string, not ${shown(name)}`)
}

/** Decodes the name of a member. Other clients may name their nodes as they like. */
function decodedName(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
