import { randomUUID } from 'node:crypto'
import {
  ConnectionLossError,
  deleteOwn,
  NodeExistsError,
  NoNodeError,
  NotSentError,
  RefusedError,
  retryUnsent,
  type CreatedTogether,
  type ZooKeeper,
} from '../index.js'
import type { Claim } from 'signalbox'
import { endOfTick } from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import { Changes, type Change, type Queue } from './changes.js'
import { makeFolders } from './folders.js'
import { checkLosses } from './losses.js'
import { nodePrefix, readerNames, twinPrefixes } from './names.js'
import { nodeText } from './node-text.js'
import { OwnNode, type OwnRequest } from './own-request.js'
import { queueOf } from './queue.js'

/** The reason why a request could not be queued. */
export type EntryProblem =
  | { readonly state: 'gone' }
  | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

/** The turn of a request on its keys. */
interface Turn {
  /** Resolves when the earlier requests have passed their turns; undefined if there are none. */
  readonly ahead: Promise<unknown> | undefined
  /** Whether a request waits for this turn to pass. */
  readonly isFollowed: () => boolean
  /** Lets the next request be sent. */
  readonly pass: () => void
}

export const GONE = { state: 'gone' } as const

/**
 * Creates, finds, replaces and deletes the nodes of a box's requests. A request has an ephemeral sequential node for
 * each of its keys, all created in one multi, so that the queues agree on the order. With a bridge, each node has
 * twins: nodes that mean the same to locks of other libraries, which do not count the node itself.
 */
export class LockNodes {
  readonly #box: BoxContext
  readonly #changes: Changes
  /** The requests that have nodes or are about to, by parent. The server deletes only parents without children. */
  readonly #existing = new Map<string, Set<OwnRequest>>()
  /** Resolves when the next request of this box on the key may be sent, by parent. */
  readonly #turns = new Map<string, Promise<void>>()

  constructor(box: BoxContext) {
    this.#box = box
    this.#changes = new Changes(box.place.acl)
  }

  /**
   * Creates the nodes of a request in the session of its client, and sets their positions.
   * @param instead a request whose nodes are deleted in the same step.
   */
  async create(own: OwnRequest, instead: OwnRequest | undefined): Promise<EntryProblem | undefined> {
    const client = own.client!
    own.guid = randomUUID()
    own.nodes = own.request.claims.map(claim => new OwnNode(claim, this.#box.paths.lock(claim.key)))
    const parents = own.nodes.map(({ parent }) => parent)
    const turn = this.#takeTurn(parents)
    try {
      if (turn.ahead) await turn.ahead
      return own.phase === 'gone' ? GONE : await this.#createInTurn(client, own, parents, instead, turn)
    } finally {
      turn.pass()
    }
  }

  /** Makes the next requests on these keys wait. */
  #takeTurn(parents: readonly string[]): Turn {
    const ahead = parents.map(parent => this.#turns.get(parent)).filter(turn => turn !== undefined)
    let end!: () => void
    const over = new Promise<void>(resolve => (end = resolve))
    const turn = Promise.all([...ahead, over]).then(() => {
      for (const parent of parents) if (this.#turns.get(parent) === turn) this.#turns.delete(parent)
    })
    for (const parent of parents) this.#turns.set(parent, turn)
    return {
      ahead: ahead.length > 0 ? Promise.all(ahead) : undefined,
      isFollowed: () => parents.some(parent => this.#turns.get(parent) !== turn),
      pass: end,
    }
  }

  /**
   * Creates the nodes of a request when those of earlier ones on the same keys have been sent.
   *
   * If a parent is missing, the next request may find it, and must not overtake. So a request that does not know of its
   * parents lets the next one be sent when it has its nodes; but if one follows in the same tick, it makes the parents
   * first, without waiting for the reply. A lone request does so only if they are missing, because that costs a change.
   */
  async #createInTurn(
    client: ZooKeeper,
    own: OwnRequest,
    parents: readonly string[],
    instead: OwnRequest | undefined,
    { isFollowed, pass }: Turn,
  ): Promise<EntryProblem | undefined> {
    const leaving = instead?.paths ?? []
    const areKnown = (): boolean => Boolean(instead) || parents.every(parent => this.#existing.has(parent))
    let making: Promise<void> | undefined
    if (!areKnown()) {
      await new Promise<void>(endOfTick)
      if (own.phase === 'gone') return GONE
      if (isFollowed()) making = this.#makeParents(client, own.nodes)
    }
    for (;;) {
      making?.catch(() => undefined)
      const isRisky = !making && !areKnown()
      let queues: Promise<readonly Queue[]>
      try {
        const changes = [...deletions(leaving), ...this.#creations(own)]
        const changing = this.#changes.apply(client, changes, parents, own.order, isRisky)
        if (!isRisky) this.#exist(own, pass)
        const changed = await changing
        this.#name(own, changed.created)
        if (isRisky) this.#exist(own, pass)
        queues = changed.queues
        const [first] = changed.created as [CreatedTogether]
        const stat = first.stat ?? (await client.exists(first.path))
        // Another client has deleted it already.
        if (!stat) return GONE
        this.#box.time.observe(stat)
        own.number = Number(stat.czxid)
      } catch (error) {
        this.forget(own)
        if (error instanceof NoNodeError) {
          if (leaving.includes(error.path)) return GONE
          const made = making
          making = made ? undefined : this.#makeParents(client, own.nodes)
          await made
          continue
        }
        if (!(error instanceof ConnectionLossError)) throw error
        // Later requests wait again: they would overtake those that are lost with this one.
        const again = this.#takeTurn(parents)
        // If the nodes were created, they block other requests until they are found or the session ends.
        const found = await retryUnsent(() => this.#find(client, own, parents)).finally(again.pass)
        if (!found) {
          checkLosses(++own.losses, { key: own.keys, engine: this.#box.place.name })
          continue
        }
        this.#exist(own, pass)
        queues = Promise.resolve(found)
      }
      return setPositions(own, await queues)
    }
  }

  /** Counts the nodes of a request as deleted. */
  forget(own: OwnRequest): void {
    for (const { parent } of own.nodes) {
      const others = this.#existing.get(parent)
      if (others?.delete(own) && others.size === 0) this.#existing.delete(parent)
    }
  }

  /** Counts the nodes of a request as existing; the next request on its keys may be sent. */
  #exist(own: OwnRequest, pass: () => void): void {
    pass()
    if (own.phase === 'gone') return
    for (const { parent } of own.nodes) {
      const others = this.#existing.get(parent)
      if (others) others.add(own)
      else this.#existing.set(parent, new Set([own]))
    }
  }

  /** Deletes nodes unless their session has ended. Never throws: nodes that can't be deleted end with the session. */
  async #deleteEach(client: ZooKeeper, paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map(path => deleteOwn(client, path).catch(() => undefined)))
  }

  /**
   * Deletes the nodes of a request; retries until they are gone or their session has ended. Returns whether all
   * existed.
   * @throws RefusedError if the server does not allow it
   */
  async delete({ client, paths }: OwnRequest): Promise<boolean> {
    if (!client || paths.length === 0) return false
    for (let isRetry = false; ; isRetry = true) {
      try {
        await this.#changes.apply(client, deletions(paths))
        return true
      } catch (error) {
        if (error instanceof NoNodeError) {
          if (paths.length > 1) await this.#deleteEach(client, paths)
          // The first attempt has deleted the nodes that a second one does not find.
          return isRetry
        }
        if (error instanceof RefusedError) throw error
        if (!(error instanceof ConnectionLossError || error instanceof NotSentError)) return false
      }
    }
  }

  /**
   * Replaces each exclusive node and its twins by shared ones with the same number, so that it keeps its place. Returns
   * false if another client has deleted a node.
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

  /** Touches a node, so that the request behind it checks the queue. */
  touch(own: OwnRequest, { claim, path }: OwnNode): void {
    void own.client!.setData(path, this.#text(own, claim)).catch(() => undefined)
  }

  /** Resolves when all changes that were requested so far have been sent. */
  sent(): Promise<void> {
    return this.#changes.sent()
  }

  /** The data of a node. */
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

  /** The prefixes of the names of a claim's nodes: first the node's own, then those of its twins. */
  #prefixes({ guid }: OwnRequest, claim: Claim): readonly string[] {
    const first = nodePrefix(guid, claim)
    return this.#box.place.isBridged ? [first, ...twinPrefixes(guid, claim)] : [first]
  }

  /** Sets the names that the server has assigned. */
  #name(own: OwnRequest, created: readonly CreatedTogether[]): void {
    const names = created.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
    for (const node of own.nodes) {
      const [name, ...twins] = names.splice(0, this.#prefixes(own, node.claim).length)
      Object.assign(node, { name, twins })
    }
  }

  /** Creates missing parents. They are containers, which the server deletes some time after they are empty. */
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
   * Finds the nodes of a request whose reply was lost, and returns the queues of their parents. The server that lost it
   * may not have forwarded the request yet. But then the session has moved, and the leader rejects requests of the
   * session from an old server.
   */
  async #find(
    client: ZooKeeper,
    own: OwnRequest,
    parents: readonly string[],
  ): Promise<readonly Queue[] | undefined> {
    const lists = await client.childrenOf(parents, { linearizable: true })
    let areAll = true
    for (const [index, node] of own.nodes.entries()) {
      const names = this.#prefixes(own, node.claim).map(prefix =>
        lists[index]?.find(child => child.startsWith(prefix)),
      )
      node.name = names[0]
      node.twins = names.slice(1).filter(name => name !== undefined)
      areAll &&= !names.includes(undefined)
    }
    const stat = areAll ? await client.exists(own.nodes[0]!.path) : undefined
    if (stat?.ephemeralOwner === client.sessionId) {
      own.number = Number(stat.czxid)
      return Promise.all(parents.map((parent, index) => queueOf(client, parent, lists[index] ?? [])))
    }
    // All were created in one transaction. If another client has deleted one since, the rest must not block others.
    await this.#deleteEach(client, own.paths)
    return undefined
  }
}

function setPositions({ nodes }: OwnRequest, queues: readonly Queue[]): EntryProblem | undefined {
  for (const [index, node] of nodes.entries()) {
    const position = node.setPosition(queues[index] ?? [])
    // Another client has deleted it already.
    if (!position) return GONE
    if (position.state === 'mismatch') return { state: 'mismatch', key: node.claim.key, max: position.max }
  }
  return undefined
}

function deletions(paths: readonly string[]): Change[] {
  return paths.map(path => ({ type: 'delete', path }))
}
