import type { WatchListener, ZooKeeper } from '../index.js'
import type { Claim } from 'signalbox'
import type { LockRequest, Timer } from 'signalbox/engine'
import { hasFollower, positionOf, type Contender, type Position } from './contenders.js'

/** One node of a request, in the queue of one key. */
export class OwnNode {
  /** Undefined until the server has named it. A downgrade changes it. */
  name: string | undefined
  /** The names of the nodes that other libraries count; none without a bridge. */
  twins: readonly string[] = []
  /** Whether no node ahead blocks it. Then it stays so. */
  isFree = false
  /** Number of contenders that were ahead of it at the last check. */
  ahead = 0
  /** The contenders ahead that it must watch. */
  before: readonly string[] = []
  /** The watched nodes, each with its listener. */
  readonly watched = new Map<string, WatchListener>()
  /** A watched node that had been touched before its watch was set. */
  touched: string | undefined
  /** Whether the next node may wait until this one is touched. */
  hasFollower = false
  /** Whether no contender was behind it at the last check. */
  isLast = false

  constructor(
    readonly claim: Claim,
    /** The node whose children contend for the key. */
    readonly parent: string,
  ) {}

  /** The full path of the node without its twins, once it has a name. */
  get path(): string {
    return `${this.parent}/${this.name!}`
  }

  /** The full paths of the node and its twins that have names. */
  get paths(): string[] {
    return this.pathsBy([this.name, ...this.twins])
  }

  /** The full paths that the node and its twins would have with these names. */
  pathsBy(names: readonly (string | undefined)[]): string[] {
    return names.filter(name => name !== undefined).map(name => `${this.parent}/${name}`)
  }

  /** Sets its position in its queue; returns undefined if it is missing. */
  setPosition(contenders: readonly Contender[]): Position | undefined {
    const index = contenders.findIndex(({ name }) => name === this.name)
    if (index < 0) return undefined
    const position = positionOf(contenders, index)
    this.isLast = index === contenders.length - 1
    if (position.state === 'free') {
      this.isFree = true
      this.hasFollower = hasFollower(contenders, index)
    } else if (position.state === 'blocked') {
      this.ahead = position.ahead
      this.before = position.watch
    }
    return position
  }
}

/** A request of this session, with its nodes. */
export class OwnRequest {
  /** Part of the names of its nodes, to find them if the reply to their creation is lost. Different in each session. */
  guid = ''
  nodes: readonly OwnNode[] = []
  /** The client whose session its nodes end with. */
  client: ZooKeeper | undefined
  /** `entering` while its nodes are created; `free` when it can be granted; `gone` when its nodes are being deleted. */
  phase: 'entering' | 'waiting' | 'free' | 'held' | 'gone' = 'entering'
  /** The ID of the transaction that created its nodes. */
  number = 0
  /** Number of times that the creation of its nodes was lost with the connection. */
  losses = 0
  /** Resolves when its nodes are created or have failed; after a downgrade, when they are replaced. */
  entered: Promise<unknown> = Promise.resolve()
  /** Ends the request if the next sign of its box is late. */
  timer: Timer | undefined
  /** Ends the time for which the server's view that no other request waits is used. */
  uncontendedTimer: Timer | undefined
  /** Whether its queues have changed since the last check began, and whether a check is running. */
  isStale = false
  isChecking = false

  constructor(
    readonly request: LockRequest,
    /** Increases from request to request. */
    readonly order: number,
    public lease: number,
  ) {}

  get paths(): string[] {
    return this.nodes.flatMap(({ paths }) => paths)
  }

  /** The keys, for errors. */
  get keys(): string {
    return this.request.claims.map(({ key }) => key).join(', ')
  }

  get isFree(): boolean {
    return this.nodes.every(node => node.isFree)
  }

  /** Whether it excludes all others, and no contender is behind it. */
  get isUncontended(): boolean {
    return this.nodes.every(({ claim, isLast }) => claim.mode === 'exclusive' && isLast)
  }
}
