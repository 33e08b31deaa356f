import {
  NoNodeError,
  RefusedError,
  type Acl,
  type CreatedTogether,
  type Transaction,
  type ZooKeeper,
} from 'signalbox-zookeeper'
import { endOfTick, TickBatcher } from '../../engine/kit/tick-batcher.js'

/** A lock node to create, whose name the server completes, or one to delete. */
export type Change =
  | { readonly type: 'create'; readonly prefix: string; readonly text: string }
  | { readonly type: 'delete'; readonly path: string }

/** The names of children; undefined for a missing node. */
type Names = readonly string[] | undefined

/** The result of changes. */
export interface ChangeResult {
  /** In the order of the creations. */
  readonly created: readonly CreatedTogether[]
  /** The children of each parent, read after the changes. Without parents, a caller need not handle it. */
  readonly lists: Promise<readonly Names[]>
}

/** The changes of one caller, which are applied together. */
interface Group {
  readonly client: ZooKeeper
  readonly order: number
  readonly changes: readonly Change[]
  readonly parents: readonly string[]
  readonly resolve: (changed: ChangeResult) => void
  readonly reject: (error: unknown) => void
}

/**
 * Maximum size of a request, in bytes, approximately. The server rejects more than 1 MiB; short ones delay others less.
 */
const MAX_SIZE = 128 * 1024
/** The size of a part without its texts, in bytes, approximately. */
const FRAMING = 64
/** The error code for a missing node. */
const NO_NODE = -101

/**
 * Creates and deletes lock nodes. The changes of the callers of one tick are sent as one multi, because a request costs
 * a server more than a part of one. If the server rejects it, nothing was applied, and each caller's part is sent by
 * itself, so that no caller fails because of another. Two requests on the same key never share a multi, because their
 * number is the ID of the transaction.
 */
export class Changes {
  readonly #options: { readonly ephemeral: true; readonly sequential: true; readonly acl: readonly Acl[] }
  readonly #groups = new TickBatcher<Group>(() => this.#send())

  constructor(acl: readonly Acl[]) {
    this.#options = { ephemeral: true, sequential: true, acl }
  }

  /**
   * Applies all changes or none, and reads the children of `parents` after them, in the same packet. Rejects like the
   * client. After a ConnectionLossError, the changes may have been applied.
   * @param order of the callers of one tick. Without it, requests that restart after the end of a session would be in
   * random order.
   */
  apply(
    client: ZooKeeper,
    changes: readonly Change[],
    parents: readonly string[] = [],
    order = 0,
  ): Promise<ChangeResult> {
    return new Promise((resolve, reject) => {
      this.#groups.add({ client, order, changes, parents, resolve, reject })
    })
  }

  /** Resolves when everything that was requested in this tick has been sent. */
  async sent(): Promise<void> {
    await new Promise<void>(endOfTick)
    await this.#groups.idle()
  }

  #send(): void {
    const groups = this.#groups.take().sort((a, b) => a.order - b.order)
    for (const batch of batchesOf(groups)) void this.#apply(batch)
  }

  async #apply(groups: readonly Group[]): Promise<void> {
    const { client } = groups[0]!
    const answering = this.#results(
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
        this.#applyEach(groups, await lists.catch(() => undefined))
      else for (const { reject } of groups) reject(error)
    }
  }

  /**
   * Sends each group by itself after the server has rejected them together. The usual reason is a missing parent, which
   * is known by now. Sending these groups anyway would double the requests for locks on new keys.
   */
  #applyEach(groups: readonly Group[], known: ReadonlyMap<string, Names> | undefined): void {
    for (const group of groups) {
      const missing = known && group.parents.find(parent => known.get(parent) === undefined)
      if (missing === undefined) void this.#apply([group])
      else group.reject(new NoNodeError('create', missing, NO_NODE, 'NO_NODE', 'the node does not exist'))
    }
  }

  /** Sends a single creation without a multi: servers before 3.9 return a stat only then. */
  async #results(
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

/** Splits groups into batches that are sent together, in order. */
function batchesOf(groups: readonly Group[]): Group[][] {
  const batches: Group[][] = []
  let size = 0
  const keys = new Set<string>()
  for (const group of groups) {
    const own = sizeOf(group)
    const isOther = batches.at(-1)?.at(-1)?.client !== group.client
    if (isOther || size + own > MAX_SIZE || group.parents.some(parent => keys.has(parent))) {
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

/** Returns the promise; a caller need not handle its failure. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
