import type { WatchListener, ZooKeeper } from 'signalbox-zookeeper'
import type { Timer } from '../../clock.js'
import type { Claim } from '../../engine/claim.js'
import type { LockRequest } from '../../engine/contract.js'
import { hasFollower, positionOf, type Contender, type Position } from './contenders.js'

/** One node of a request, in the queue of one key. */
export class OwnNode {
  /** Undefined until the server has named it; another one after a downgrade. */
  name: string | undefined
  /** The names of the nodes beside it that other libraries count; none without a bridge. */
  twins: readonly string[] = []
  /** Whether no node before it keeps it out. Then it stays so. */
  isFree = false
  /** How many contenders stood before it at the last look. */
  ahead = 0
  /** Those of them that keep it out, as far as it has to look at them. */
  before: readonly string[] = []
  /** The nodes whose changes are told, and the listeners that are told. */
  readonly watched = new Map<string, WatchListener>()
  /** One of those nodes, which had been touched when it was looked at. */
  touched: string | undefined
  /** Whether the node behind it may wait for a sign that it got in. */
  hasFollower = false
  /** Whether no contender stood behind it at the last look. */
  isLast = false

  constructor(
    readonly claim: Claim,
    /** The node whose children contend for the key. */
    readonly parent: string,
  ) {}

  /** The full path, once it has a name, without its twins. */
  get path(): string {
    return `${this.parent}/${this.name!}`
  }

  /** The full paths of the node and its twins, as far as they have names. */
  get paths(): string[] {
    return this.pathsBy([this.name, ...this.twins])
  }

  /** The full paths that the node and its twins have by these names. */
  pathsBy(names: readonly (string | undefined)[]): string[] {
    return names.filter(name => name !== undefined).map(name => `${this.parent}/${name}`)
  }

  /** Notes how it stands in its queue; undefined when it is not there. */
  notePosition(contenders: readonly Contender[]): Position | undefined {
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
  /** By which its nodes are found when the answer to their creation was lost; another one in each session. */
  guid = ''
  nodes: readonly OwnNode[] = []
  /** The client whose session its nodes end with. */
  client: ZooKeeper | undefined
  /** `entering` while its nodes are created; `free` when it can be granted; `gone` when its nodes are to vanish. */
  phase: 'entering' | 'waiting' | 'free' | 'held' | 'gone' = 'entering'
  /** The transaction that created its nodes. */
  number = 0
  /** How often the creation of its nodes was lost with the connection. */
  losses = 0
  /** Settles when it has been entered, or could not be; later when its nodes have been replaced by a downgrade. */
  entered: Promise<unknown> = Promise.resolve()
  /** Ends the request unless it is heard of. */
  timer: Timer | undefined
  /** Ends the time for which the server vouches that no other request waits. */
  alone: Timer | undefined
  /** Whether its queues have changed since the last look began, and whether a look is under way. */
  isStale = false
  isLooking = false

  constructor(
    readonly request: LockRequest,
    /** Rises from request to request. */
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

  /** Whether it keeps all others out, and no contender stands behind it. */
  get isUncontended(): boolean {
    return this.nodes.every(({ claim, isLast }) => claim.mode === 'exclusive' && isLast)
  }
}
