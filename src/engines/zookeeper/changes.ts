import {
  NoNodeError,
  RefusedError,
  type Acl,
  type CreatedTogether,
  type Transaction,
  type ZooKeeper,
} from 'signalbox-zookeeper'
import { endOfTick, TickBatcher } from '../../engine/kit/tick-batcher.js'

/** A lock node to be created, whose name the server completes, or one to be deleted. */
export type Change =
  | { readonly type: 'create'; readonly prefix: string; readonly text: string }
  | { readonly type: 'delete'; readonly path: string }

/** The names of children; undefined for a node that is not there. */
type Names = readonly string[] | undefined

/** What became of changes that were carried out. */
export interface Changed {
  /** In the order of the creations. */
  readonly created: readonly CreatedTogether[]
  /** The children of each node that was named, read after the changes. A caller that named none need not look at it. */
  readonly lists: Promise<readonly Names[]>
}

/** What one caller wants to be done together. */
interface Group {
  readonly client: ZooKeeper
  readonly order: number
  readonly changes: readonly Change[]
  readonly parents: readonly string[]
  readonly resolve: (changed: Changed) => void
  readonly reject: (error: unknown) => void
}

/** A request of more than 1 MiB is refused; shorter ones let others come in between. Bytes, about. */
const LARGEST = 128 * 1024
/** What a part takes beside its texts: bytes, about. */
const FRAMING = 64
/** By which a server says that there is no such node. */
const NO_NODE = -101

/**
 * Creates and deletes lock nodes. What the callers of one tick want travels in one multi, because a server spends more
 * on a request than on a part of one. Where the server refuses it, nothing of it was applied, and each caller's part is
 * carried out alone, so that no caller fails because of another. No two that enter the queue of the same key go
 * together: their number is that of the transaction.
 */
export class Changes {
  readonly #options: { readonly ephemeral: true; readonly sequential: true; readonly acl: readonly Acl[] }
  readonly #groups = new TickBatcher<Group>(() => this.#send())

  constructor(acl: readonly Acl[]) {
    this.#options = { ephemeral: true, sequential: true, acl }
  }

  /**
   * Carries out all changes or none, and reads the children of `parents` after them in the same packet.
   * Rejects as the client does. After a ConnectionLossError the changes may have been applied.
   * @param order in which the callers of one tick are served: requests that begin anew after the end of a session come
   * in no order.
   */
  carryOut(
    client: ZooKeeper,
    changes: readonly Change[],
    parents: readonly string[] = [],
    order = 0,
  ): Promise<Changed> {
    return new Promise((resolve, reject) => {
      this.#groups.add({ client, order, changes, parents, resolve, reject })
    })
  }

  /** Settles when all that was asked for in this tick has been sent. */
  async sent(): Promise<void> {
    await new Promise<void>(endOfTick)
    await this.#groups.idle()
  }

  #send(): void {
    const groups = this.#groups.take().sort((a, b) => a.order - b.order)
    for (const batch of batchesOf(groups)) void this.#carryOut(batch)
  }

  async #carryOut(groups: readonly Group[]): Promise<void> {
    const { client } = groups[0]!
    const answering = this.#answersTo(
      client,
      groups.flatMap(({ changes }) => changes),
    )
    const lists = childrenByParent(client, [...new Set(groups.flatMap(({ parents }) => parents))])
    try {
      const answers = await answering
      let at = 0
      for (const { changes, parents, resolve } of groups) {
        const created = answers.slice(at, (at += changes.length)).filter(answer => answer !== undefined)
        resolve({ created, lists: quiet(lists.then(all => parents.map(parent => all.get(parent)))) })
      }
    } catch (error) {
      if (groups.length > 1 && error instanceof RefusedError)
        this.#carryOutEach(groups, await lists.catch(() => undefined))
      else for (const { reject } of groups) reject(error)
    }
  }

  /**
   * Carries out alone what was refused together. Missing parents are the usual reason, and known by now: locks of keys
   * that are new, as those of single orders are, would take twice as many requests otherwise.
   */
  #carryOutEach(groups: readonly Group[], known: ReadonlyMap<string, Names> | undefined): void {
    for (const group of groups) {
      const missing = known && group.parents.find(parent => known.get(parent) === undefined)
      if (missing === undefined) void this.#carryOut([group])
      else group.reject(new NoNodeError('create', missing, NO_NODE, 'NO_NODE', 'there is no such node'))
    }
  }

  /** Sends one change as it is: servers before 3.9 tell a creation's stat only there. */
  async #answersTo(
    client: ZooKeeper,
    changes: readonly Change[],
  ): Promise<readonly (CreatedTogether | undefined)[]> {
    const [first] = changes
    if (changes.length === 1 && first?.type === 'create')
      return [await client.create(first.prefix, first.text, this.#options)]
    const transaction = client.transaction()
    this.#add(transaction, changes)
    return (await transaction.commit()) as (CreatedTogether | undefined)[]
  }

  #add(transaction: Transaction, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === 'create') transaction.create(change.prefix, change.text, this.#options)
      else transaction.delete(change.path)
    }
  }
}

/** The groups that go together, in their order. */
function batchesOf(groups: readonly Group[]): Group[][] {
  const batches: Group[][] = []
  let size = 0
  const keys = new Set<string>()
  for (const group of groups) {
    const own = sizeOf(group)
    const isOther = batches.at(-1)?.at(-1)?.client !== group.client
    if (isOther || size + own > LARGEST || group.parents.some(parent => keys.has(parent))) {
      batches.push([])
      size = 0
      keys.clear()
    }
    batches.at(-1)!.push(group)
    size += own
    for (const parent of group.parents) keys.add(parent)
  }
  return batches
}

function sizeOf({ changes }: Group): number {
  const texts = changes.map(change =>
    change.type === 'create' ? change.prefix.length + change.text.length : change.path.length,
  )
  return texts.reduce((sum, length) => sum + FRAMING + length, 0)
}

function childrenByParent(
  client: ZooKeeper,
  parents: readonly string[],
): Promise<ReadonlyMap<string, Names>> {
  const read = parents.length === 0 ? Promise.resolve([]) : client.childrenOf(parents)
  return quiet(read.then(all => new Map(parents.map((parent, index) => [parent, all[index]]))))
}

/** The promise; a caller need not handle its failure. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
