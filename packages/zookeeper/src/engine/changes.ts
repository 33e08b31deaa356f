import {
  NoNodeError,
  RefusedError,
  type Acl,
  type CreatedTogether,
  type Transaction,
  type ZooKeeper,
} from '../index.js'
import { TickBatcher, endOfTick } from 'signalbox/engine'
import type { Contender } from './contenders.js'
import { queueOf } from './queue.js'

/** A lock node to create, whose name the server completes, or one to delete. */
export type Change =
  | { readonly type: 'create'; readonly prefix: string; readonly text: string }
  | { readonly type: 'delete'; readonly path: string }

/** The contenders of a parent, oldest first; undefined for a missing node. */
export type Queue = readonly Contender[] | undefined

/** The queues that the callers of one tick read, by parent. */
type Queues = Map<string, Promise<Queue>>

/** The result of changes. */
export interface ChangeResult {
  /** In the order of the creations. */
  readonly created: readonly CreatedTogether[]
  /** The queue of each parent, read after the changes. A caller need not handle its failure. */
  readonly queues: Promise<readonly Queue[]>
}

/** The changes of one caller, which are applied together. */
interface Group {
  readonly client: ZooKeeper
  readonly order: number
  readonly isRisky: boolean
  readonly changes: readonly Change[]
  readonly parents: readonly string[]
  readonly resolve: (changed: ChangeResult) => void
  readonly reject: (error: unknown) => void
}

/**
 * Maximum size of a request, in bytes, approximately. Servers reject more than 1 MiB, and short requests delay others
 * less.
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
 * number is the ID of the transaction. They share one read of the queue, so that many requests for one key cost one
 * read a tick, not one each.
 */
export class Changes {
  readonly #options: { readonly ephemeral: true; readonly sequential: true; readonly acl: readonly Acl[] }
  readonly #groups = new TickBatcher<Group>(() => this.#send())

  constructor(acl: readonly Acl[]) {
    this.#options = { ephemeral: true, sequential: true, acl }
  }

  /**
   * Applies all changes or none, and reads the queues of `parents` after them, in the same tick. Rejects like the
   * client. After a ConnectionLossError, the changes may have been applied.
   * @param order of the callers of one tick. Without it, requests that restart after the end of a session would be in
   * random order.
   * @param isRisky whether a parent may be missing. Such changes share no multi with safe ones, which would be sent
   * again after the server has rejected it, behind later changes on the same keys.
   */
  apply(
    client: ZooKeeper,
    changes: readonly Change[],
    parents: readonly string[] = [],
    order = 0,
    isRisky = false,
  ): Promise<ChangeResult> {
    return new Promise((resolve, reject) => {
      this.#groups.add({ client, order, isRisky, changes, parents, resolve, reject })
    })
  }

  /** Resolves when everything that was requested in this tick has been sent. */
  async sent(): Promise<void> {
    await new Promise<void>(endOfTick)
    await this.#groups.idle()
  }

  #send(): void {
    const groups = this.#groups.take().sort((a, b) => a.order - b.order)
    const queues = new Map<ZooKeeper, Queues>()
    for (const [batch, parents] of withReads(batchesOf(groups))) {
      const { client } = batch[0]!
      if (!queues.has(client)) queues.set(client, new Map())
      void this.#apply(batch, parents, queues.get(client)!)
    }
  }

  /** Applies the changes of groups, then reads the queues of `parents` into `queues`. */
  async #apply(groups: readonly Group[], parents: readonly string[], queues: Queues): Promise<void> {
    const { client } = groups[0]!
    const answering = this.#results(
      client,
      groups.flatMap(({ changes }) => changes),
    )
    if (parents.length > 0) readQueues(client, parents, queues)
    try {
      const answers = await answering
      let at = 0
      for (const { changes, parents, resolve } of groups) {
        const created = answers.slice(at, (at += changes.length)).filter(answer => answer !== undefined)
        resolve({ created, queues: quiet(queuesOf(parents, queues)) })
      }
    } catch (error) {
      if (groups.length > 1 && error instanceof RefusedError) await this.#applyEach(groups, queues)
      else for (const { reject } of groups) reject(error)
    }
  }

  /**
   * Sends each group by itself after the server has rejected them together. The usual reason is a missing parent, which
   * is known by now. Sending these groups anyway would double the requests for locks on new keys.
   */
  async #applyEach(groups: readonly Group[], queues: Queues): Promise<void> {
    const known = await Promise.all(
      groups.map(({ parents }) => queuesOf(parents, queues).catch(() => undefined)),
    )
    for (const [index, group] of groups.entries()) {
      const at = known[index]?.indexOf(undefined) ?? -1
      const missing = group.parents[at]
      if (missing === undefined) void this.#apply([group], group.parents, new Map())
      else group.reject(new NoNodeError('create', missing, NO_NODE, 'NO_NODE', 'the node does not exist'))
    }
  }

  /** Sends a single creation without a multi, because servers before 3.9 return its stat only then. */
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

/** Groups that are sent together. */
interface Batch {
  readonly client: ZooKeeper
  readonly groups: Group[]
  size: number
  /** Undefined if it only deletes. Deletions join any other changes. */
  isRisky: boolean | undefined
}

/**
 * Splits groups into batches that are sent in this order. A group comes after all that have changed one of its keys
 * before it, and otherwise as early as it can, so that there are few batches.
 */
function batchesOf(groups: readonly Group[]): Group[][] {
  const batches: Batch[] = []
  /** For each client, by key: the batch after the last one that changes it. */
  const free = new Map<ZooKeeper, Map<string, number>>()
  for (const group of groups) {
    const { client, parents } = group
    const after = free.get(client) ?? new Map<string, number>()
    free.set(client, after)
    const isRisky = parents.length > 0 ? group.isRisky : undefined
    const size = sizeOf(group)
    const fits = (batch: Batch): boolean =>
      batch.client === client &&
      batch.size + size <= MAX_SIZE &&
      (isRisky ?? batch.isRisky) === (batch.isRisky ?? isRisky)
    let at = Math.max(0, ...parents.map(parent => after.get(parent) ?? 0))
    while (at < batches.length && !fits(batches[at]!)) at++
    const batch = (batches[at] ??= { client, groups: [], size: 0, isRisky })
    batch.groups.push(group)
    batch.size += size
    batch.isRisky ??= isRisky
    for (const parent of parents) after.set(parent, at + 1)
  }
  return batches.map(batch => batch.groups)
}

function sizeOf({ changes }: Group): number {
  const texts = changes.map(change =>
    change.type === 'create' ? change.prefix.length + change.text.length : change.path.length,
  )
  return texts.reduce((sum, length) => sum + FRAMING + length, 0)
}

/** Adds to each batch the parents whose queues are read after it: those that no later batch of its client changes. */
function withReads(batches: readonly Group[][]): (readonly [Group[], string[]])[] {
  const later = new Map<ZooKeeper, Set<string>>()
  return batches
    .toReversed()
    .map(batch => {
      const { client } = batch[0]!
      const seen = later.get(client) ?? new Set()
      later.set(client, seen)
      const parents = [...new Set(batch.flatMap(({ parents }) => parents))].filter(
        parent => !seen.has(parent),
      )
      for (const parent of parents) seen.add(parent)
      return [batch, parents] as const
    })
    .reverse()
}

function readQueues(client: ZooKeeper, parents: readonly string[], queues: Queues): void {
  const reading = client.childrenOf(parents)
  for (const [index, parent] of parents.entries()) {
    const queue = reading.then(all => all[index] && queueOf(client, parent, all[index]))
    queues.set(parent, quiet(queue))
  }
}

function queuesOf(parents: readonly string[], queues: Queues): Promise<Queue[]> {
  return Promise.all(parents.map(parent => queues.get(parent)!))
}

/** Returns the promise; a caller need not handle its failure. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
