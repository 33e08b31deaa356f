import { NoNodeError, type WatchListener } from 'signalbox-zookeeper'
import type { Clock } from '../../clock.js'
import { contendersOf } from './contenders.js'
import type { LockNodes } from './lock-nodes.js'
import type { OwnNode, OwnRequest } from './own-request.js'
import { queueOf } from './queue.js'

/** Is told of what a look at the queues has found. */
export interface QueueWatchListener {
  /** Nothing keeps a waiting request out any more. */
  free(own: OwnRequest): void
  /** Another client has deleted a node of a waiting request. */
  taken(own: OwnRequest): void
  /** Another request has come behind one that was alone, or may have come. */
  contended(own: OwnRequest): void
}

/** The pause after a look that failed: milliseconds. */
const LOOK_PAUSE = 200
/** What one server tells of a queue counts for so long, because it may be behind the others: milliseconds. */
const ALONE_FOR = 20

/** Watches the queues of requests: before a request that waits, and behind a grant that is alone. */
export class QueueWatch {
  readonly #clock: Clock
  readonly #nodes: LockNodes
  readonly #listener: QueueWatchListener

  constructor(clock: Clock, nodes: LockNodes, listener: QueueWatchListener) {
    this.#clock = clock
    this.#nodes = nodes
    this.#listener = listener
  }

  /** Looks at the queues again when something changes before a request. */
  watchBefore(own: OwnRequest): void {
    for (const node of own.nodes) if (!node.isFree) this.#watchNode(own, node)
  }

  /** Tells as soon as another request stands behind one behind which there was none. */
  watchBehind(own: OwnRequest): void {
    const wanted = () => {
      own.alone?.cancel()
      own.alone = undefined
      this.#listener.contended(own)
    }
    own.alone = this.#clock.after(ALONE_FOR, wanted, false)
    for (const { parent, name } of own.nodes)
      own.client!.getChildren(parent, { watch: wanted }).then(
        // The watch does not tell of a request that came before the watch.
        ({ children }) => contendersOf(children).at(-1)?.name !== name && wanted(),
        wanted,
      )
  }

  /** Takes back what is still watched before a request that is free or over. */
  unwatch({ client, nodes }: OwnRequest): void {
    for (const { parent, watched } of nodes) {
      for (const [name, watch] of watched) client!.unwatch(`${parent}/${name}`, watch)
      watched.clear()
    }
  }

  #watchNode(own: OwnRequest, node: OwnNode): void {
    for (const name of node.before) {
      if (node.watched.has(name)) continue
      const watch: WatchListener = ({ type }) => {
        node.watched.delete(name)
        if (type !== 'ended') void this.#look(own)
      }
      node.watched.set(name, watch)
      // It is read, because `exists` would leave a watch for the node's creation when the node has gone.
      own
        .client!.getData(`${node.parent}/${name}`, { watch })
        .then(({ stat }) => {
          // It was touched before this watch was set, so it got in. That counts once: other clients may touch nodes,
          // too.
          if (stat.version === 0 || node.touched === name) return
          node.touched = name
          void this.#look(own)
        })
        .catch(() => {
          node.watched.delete(name)
          void this.#look(own)
        })
    }
  }

  /** Looks at the queues in which a request is kept out, one look at a time. */
  async #look(own: OwnRequest): Promise<void> {
    own.isStale = true
    if (own.isLooking) return
    own.isLooking = true
    while (own.isStale && own.phase === 'waiting') {
      own.isStale = false
      try {
        await this.#lookOnce(own)
      } catch (error) {
        // The server deletes a key's node only when it has no children.
        if (error instanceof NoNodeError) this.#listener.taken(own)
        else this.#clock.after(LOOK_PAUSE, () => void this.#look(own), false)
      }
    }
    own.isLooking = false
  }

  async #lookOnce(own: OwnRequest): Promise<void> {
    const client = own.client!
    const blocked = own.nodes.filter(node => !node.isFree)
    const queues = await Promise.all(
      blocked.map(async ({ parent }) => queueOf(client, parent, (await client.getChildren(parent)).children)),
    )
    if (own.phase !== 'waiting') return
    for (const [index, node] of blocked.entries()) {
      const position = node.notePosition(queues[index]!)
      if (!position) {
        this.#listener.taken(own)
        return
      }
      if (position.state === 'blocked') this.#watchNode(own, node)
      // It got in without a deletion.
      else if (node.hasFollower) this.#nodes.touch(own, node)
    }
    if (own.isFree) this.#listener.free(own)
  }
}
