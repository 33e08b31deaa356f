import { NoNodeError, type WatchListener } from '../index.js'
import type { Clock } from 'signalbox/engine'
import { contendersOf } from './contenders.js'
import type { LockNodes } from './lock-nodes.js'
import type { OwnNode, OwnRequest } from './own-request.js'
import { QueueReads } from './queue.js'

/** Receives the results of checks of the queues. */
export interface QueueWatchListener {
  /** Called when nothing blocks a waiting request any more. */
  onFree(own: OwnRequest): void
  /** Called when another client has deleted a node of a waiting request. */
  onDeleted(own: OwnRequest): void
  /** Called when another request is, or may be, behind an uncontended one. */
  onContended(own: OwnRequest): void
}

/** The pause after a failed check, in milliseconds. */
const RETRY_PAUSE = 200
/** Time for which the view of one server is used, in milliseconds. That server may be behind the others. */
const UNCONTENDED_FOR = 20

/** Watches the queues of requests: ahead of a waiting request, and behind an uncontended grant. */
export class QueueWatch {
  readonly #clock: Clock
  readonly #nodes: LockNodes
  readonly #listener: QueueWatchListener
  readonly #reads = new QueueReads()

  constructor(clock: Clock, nodes: LockNodes, listener: QueueWatchListener) {
    this.#clock = clock
    this.#nodes = nodes
    this.#listener = listener
  }

  /** Checks the queues again when something changes ahead of a request. */
  watchBefore(own: OwnRequest): void {
    for (const node of own.nodes) if (!node.isFree) this.#watchNode(own, node)
  }

  /** Reports as soon as another request is behind an uncontended one. */
  watchBehind(own: OwnRequest): void {
    const contended = () => {
      own.uncontendedTimer?.cancel()
      own.uncontendedTimer = undefined
      this.#listener.onContended(own)
    }
    own.uncontendedTimer = this.#clock.after(UNCONTENDED_FOR, contended, false)
    for (const { parent, name } of own.nodes)
      own.client!.getChildren(parent, { watch: contended }).then(
        // The watch does not report a request that was there before it.
        // mutant: contended-before-watch
        ({ children }) => contendersOf(children).at(-1)?.name !== name && contended(),
        contended,
      )
  }

  /** Removes the remaining watches of a request that is free or has ended. */
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
        // mutant: deleted-node-ignored
        if (type !== 'ended') void this.#check(own)
      }
      node.watched.set(name, watch)
      // Not `exists`, which would leave a watch for the node's creation if the node is gone.
      own
        .client!.getData(`${node.parent}/${name}`, { watch })
        .then(({ stat }) => {
          // It was touched before this watch was set, so it has its permits. Count this once, because other clients may
          // touch nodes, too.
          if (stat.version === 0 || node.touched === name) return
          node.touched = name
          void this.#check(own)
        })
        .catch(() => {
          node.watched.delete(name)
          // mutant: deleted-before-watch
          void this.#check(own)
        })
    }
  }

  /** Checks the queues in which a request is blocked, one check at a time. */
  async #check(own: OwnRequest): Promise<void> {
    own.isStale = true
    if (own.isChecking) return
    own.isChecking = true
    while (own.isStale && own.phase === 'waiting') {
      own.isStale = false
      try {
        await this.#checkOnce(own)
      } catch (error) {
        // The server deletes the parent only when it has no children.
        if (error instanceof NoNodeError) this.#listener.onDeleted(own)
        else this.#clock.after(RETRY_PAUSE, () => void this.#check(own), false)
      }
    }
    own.isChecking = false
  }

  async #checkOnce(own: OwnRequest): Promise<void> {
    const client = own.client!
    const blocked = own.nodes.filter(node => !node.isFree)
    const queues = await Promise.all(blocked.map(({ parent }) => this.#reads.read(client, parent)))
    if (own.phase !== 'waiting') return
    for (const [index, node] of blocked.entries()) {
      const position = node.setPosition(queues[index]!)
      if (!position) {
        this.#listener.onDeleted(own)
        return
      }
      if (position.state === 'blocked') this.#watchNode(own, node)
      // It has its permits, without a deletion ahead of it.
      else if (node.hasFollower) this.#nodes.touch(own, node)
    }
    if (own.isFree) this.#listener.onFree(own)
  }
}
