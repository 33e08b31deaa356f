import { randomUUID } from 'node:crypto'
import {
  ConnectionLossError,
  deleteOwn,
  ifExists,
  NodeExistsError,
  NoNodeError,
  NotSentError,
  RefusedError,
  retryUnsent,
  type CreatedTogether,
  type ZooKeeper,
} from 'signalbox-zookeeper'
import type { Claim } from '../../engine/claim.js'
import type { BoxContext } from './box-context.js'
import { Changes, type Change, type Changed } from './changes.js'
import { makeFolders } from './folders.js'
import { checkLosses } from './losses.js'
import { nodePrefix, readerNames, twinPrefixes } from './names.js'
import { nodeText } from './node-text.js'
import { OwnNode, type OwnRequest } from './own-request.js'
import { queueOf } from './queue.js'

/** Why a request could not be entered. */
export type EntryProblem =
  { readonly state: 'gone' } | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

export const GONE = { state: 'gone' } as const

/**
 * The nodes of a box's requests: creates, finds, replaces and deletes them. A request is an ephemeral sequential node
 * for each of its keys, all created in one multi, so that the queues agree on the order. With a bridge each node has
 * twins, which say the same to locks of other libraries that do not count it, and come and go with it.
 */
export class LockNodes {
  readonly #box: BoxContext
  readonly #changes: Changes

  constructor(box: BoxContext) {
    this.#box = box
    this.#changes = new Changes(box.place.acl)
  }

  /**
   * Creates the nodes of a request in the session of its client, and notes how they stand.
   * @param instead a request whose nodes are deleted in the same step.
   */
  async create(own: OwnRequest, instead: OwnRequest | undefined): Promise<EntryProblem | undefined> {
    const client = own.client!
    own.guid = randomUUID()
    own.nodes = own.request.claims.map(claim => new OwnNode(claim, this.#box.paths.lock(claim.key)))
    const leaving = instead?.paths ?? []
    const parents = own.nodes.map(({ parent }) => parent)
    for (;;) {
      let lists: Changed['lists']
      try {
        const changes = [...deletions(leaving), ...this.#creations(own)]
        const changed = await this.#changes.carryOut(client, changes, parents, own.order)
        this.#name(own, changed.created)
        lists = changed.lists
        const [first] = changed.created as [CreatedTogether]
        const stat = first.stat ?? (await client.exists(first.path))
        // Another client deleted it at once.
        if (!stat) return GONE
        this.#box.time.saw(stat)
        own.number = Number(stat.czxid)
      } catch (error) {
        if (error instanceof NoNodeError) {
          if (leaving.includes(error.path)) return GONE
          await this.#makeParents(client, own.nodes)
          continue
        }
        if (!(error instanceof ConnectionLossError)) throw error
        // Nodes that were created stay in the way of other requests until they are found or the session ends.
        if (!(await retryUnsent(() => this.#find(client, own)))) {
          checkLosses(++own.losses, { key: own.keys, engine: this.#box.place.name })
          continue
        }
        lists = client.childrenOf(parents)
      }
      return this.#notePositions(client, own, await lists)
    }
  }

  /** Deletes nodes unless their session is over. Never throws: what can't be deleted goes with the session. */
  async deleteEach(client: ZooKeeper, paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map(path => deleteOwn(client, path).catch(() => undefined)))
  }

  /**
   * Deletes the nodes of a request, again and again until they are gone or their session is over.
   * Gives whether all were there.
   * @throws RefusedError when the server does not allow it
   */
  async delete({ client, paths }: OwnRequest): Promise<boolean> {
    if (!client || paths.length === 0) return false
    for (let isAgain = false; ; isAgain = true) {
      try {
        await this.#changes.carryOut(client, deletions(paths))
        return true
      } catch (error) {
        if (error instanceof NoNodeError) {
          if (paths.length > 1) await this.deleteEach(client, paths)
          // What a second attempt does not find, the first one has deleted.
          return isAgain
        }
        if (error instanceof RefusedError) throw error
        if (!(error instanceof ConnectionLossError || error instanceof NotSentError)) return false
      }
    }
  }

  /**
   * Replaces each exclusive node, and its twins, by shared ones of the same number, so that it keeps its place.
   * Gives false when another client has deleted a node.
   */
  async replaceByShared(own: OwnRequest): Promise<boolean> {
    const client = own.client!
    const transaction = client.transaction()
    const moving: { node: OwnNode; name: string; twins: string[] }[] = []
    for (const node of own.nodes) {
      if (node.claim.mode !== 'exclusive') continue
      const [name, ...twins] = readerNames([node.name!, ...node.twins]) as [string, ...string[]]
      // An earlier downgrade has replaced it.
      if (name === node.name) continue
      moving.push({ node, name, twins })
      const text = this.#text(own, node.claim, own.number)
      for (const path of node.pathsBy([name, ...twins]))
        transaction.create(path, text, { ephemeral: true, acl: this.#box.place.acl })
      for (const path of node.paths) transaction.delete(path)
    }
    const [first] = moving
    if (!first) return true
    try {
      const outcome = await transaction.outcome()
      if (!outcome.done) {
        if (outcome.error instanceof NoNodeError) return false
        throw outcome.error
      }
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error
      const [path] = first.node.pathsBy([first.name]) as [string]
      if ((await client.exists(path, { linearizable: true })) === undefined) throw error
    }
    for (const { node, name, twins } of moving) Object.assign(node, { name, twins })
    return true
  }

  /** Touches a node, so that the request behind it looks at the queue. */
  touch(own: OwnRequest, { claim, path }: OwnNode): void {
    void own.client!.setData(path, this.#text(own, claim)).catch(() => undefined)
  }

  /** Settles when all changes that were asked for by now have been sent. */
  sent(): Promise<void> {
    return this.#changes.sent()
  }

  /** What a node tells about its request. */
  #text({ request, lease }: OwnRequest, claim: Claim, number?: number): string {
    return nodeText(this.#box.member, { ...request, lease }, claim, number)
  }

  #creations(own: OwnRequest): Change[] {
    return own.nodes.flatMap(({ parent, claim }) => {
      const text = this.#text(own, claim)
      return this.#prefixes(own, claim).map(prefix => ({
        type: 'create' as const,
        prefix: `${parent}/${prefix}`,
        text,
      }))
    })
  }

  /** What the names begin with by which a claim stands in its queue. Those of the twins come last. */
  #prefixes({ guid }: OwnRequest, claim: Claim): readonly string[] {
    const first = nodePrefix(guid, claim)
    return this.#box.place.isBridged ? [first, ...twinPrefixes(guid, claim)] : [first]
  }

  /** Notes the names that the server has given. */
  #name(own: OwnRequest, created: readonly CreatedTogether[]): void {
    const names = created.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
    for (const node of own.nodes) {
      const [name, ...twins] = names.splice(0, this.#prefixes(own, node.claim).length)
      Object.assign(node, { name, twins })
    }
  }

  async #notePositions(
    client: ZooKeeper,
    { nodes }: OwnRequest,
    lists: Awaited<Changed['lists']>,
  ): Promise<EntryProblem | undefined> {
    for (const [index, node] of nodes.entries()) {
      const position = node.notePosition(await queueOf(client, node.parent, lists[index] ?? []))
      // Another client deleted it at once.
      if (!position) return GONE
      if (position.state === 'mismatch') return { state: 'mismatch', key: node.claim.key, max: position.max }
    }
    return undefined
  }

  /** Parents are containers: the server deletes them some time after they are empty, so they are made when missed. */
  async #makeParents(client: ZooKeeper, nodes: readonly OwnNode[]): Promise<void> {
    await Promise.all(
      nodes.map(async ({ parent }) => {
        try {
          await client.create(parent, '', { container: true, acl: this.#box.place.acl })
        } catch (error) {
          if (error instanceof NoNodeError) await makeFolders(client, this.#box)
          else if (!(error instanceof NodeExistsError || error instanceof ConnectionLossError)) throw error
        }
      }),
    )
  }

  /**
   * Looks for the nodes of a request whose answer was lost. The server that lost it may not have passed it on yet, but
   * the session has moved, and what an old server still says for it is refused.
   */
  async #find(client: ZooKeeper, own: OwnRequest): Promise<boolean> {
    let areAll = true
    for (const node of own.nodes) {
      const found = await ifExists(client.getChildren(node.parent, { linearizable: true }))
      const names = this.#prefixes(own, node.claim).map(prefix =>
        found?.children.find(child => child.startsWith(prefix)),
      )
      node.name = names[0]
      node.twins = names.slice(1).filter(name => name !== undefined)
      const stat = node.name === undefined ? undefined : await client.exists(node.path)
      if (stat?.ephemeralOwner === client.sessionId && !names.includes(undefined))
        own.number = Number(stat.czxid)
      else areAll = false
    }
    // All were created in one transaction. If another client has deleted one since, the rest must not stay in the way.
    if (!areAll) await this.deleteEach(client, own.paths)
    return areAll
  }
}

function deletions(paths: readonly string[]): Change[] {
  return paths.map(path => ({ type: 'delete', path }))
}
