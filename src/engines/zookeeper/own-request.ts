import type { Timer } from '../../clock.js'
import type { Claim } from '../../engine/claim.js'
import type { LockRequest } from '../../engine/contract.js'
import type { WatchListener, ZooKeeper } from './client/index.js'
import { hasFollower, placeOf, type Contender, type Place } from './contenders.js'

/** One node of a request: its place in the queue of one key. */
export interface OwnNode {
  readonly claim: Claim
  /** The node whose children contend for the key. */
  readonly parent: string
  /** Undefined until the server has named it; another one after a downgrade. */
  name: string | undefined
  /** The names of the nodes beside it that other libraries count; none without a bridge. */
  twins: readonly string[]
  /** Whether no node before it keeps it out. Then it stays so. */
  isFree: boolean
  /** How many contenders stood before it at the last look. */
  ahead: number
  /** Those of them that keep it out, as far as it has to look at them. */
  before: readonly string[]
  /** The nodes whose changes are told, and the listeners that are told. */
  readonly watched: Map<string, WatchListener>
  /** One of those nodes, which had been touched when it was looked at. */
  touched: string | undefined
  /** Whether the node behind it may wait for a sign that it got in. */
  hasFollower: boolean
  /** Whether no contender stood behind it at the last look. */
  isLast: boolean
  /** Whether it is being replaced by another node of the same number. */
  isMoving: boolean
}

/** A request of this session, with its nodes. */
export interface OwnRequest {
  readonly request: LockRequest
  /** Rises from request to request. */
  readonly order: number
  /** By which its nodes are found when the answer to their creation was lost; another one in each session. */
  guid: string
  nodes: readonly OwnNode[]
  /** The client whose session its nodes end with. */
  client: ZooKeeper | undefined
  /** `entering` while its nodes are created; `free` when it can be granted; `gone` when its nodes are to vanish. */
  phase: 'entering' | 'waiting' | 'free' | 'held' | 'gone'
  /** The transaction that created its nodes. */
  number: number
  lease: number
  /** How often the creation of its nodes was lost with the connection. */
  losses: number
  /** Settles when it has been entered, or could not be; later when its nodes have been replaced by a downgrade. */
  entered: Promise<unknown>
  /** Ends the request unless it is heard of. */
  timer: Timer | undefined
  /** Ends the time for which the server vouches that no other request waits. */
  alone: Timer | undefined
  /** Is told when another request comes, or may have come. */
  wanted: (() => void) | undefined
  /** Whether a look at the queues is under way, and whether another look is wanted after it. */
  isLooking: boolean
  looksAgain: boolean
}

/** A request that has not been entered. */
export function newRequest(
  request: LockRequest,
  order: number,
  lease: number,
  guid: string,
  parentOf: (key: string) => string,
): OwnRequest {
  return {
    request,
    order,
    guid,
    nodes: request.claims.map(claim => newNode(claim, parentOf(claim.key))),
    client: undefined,
    phase: 'entering',
    number: 0,
    lease,
    losses: 0,
    entered: Promise.resolve(),
    timer: undefined,
    alone: undefined,
    wanted: undefined,
    isLooking: false,
    looksAgain: false,
  }
}

/** Forgets the nodes of a request that was not entered before its session ended. */
export function beginAnew(own: OwnRequest, guid: string): void {
  own.guid = guid
  own.nodes = own.nodes.map(({ claim, parent }) => newNode(claim, parent))
}

function newNode(claim: Claim, parent: string): OwnNode {
  return {
    claim,
    parent,
    name: undefined,
    twins: [],
    isFree: false,
    ahead: 0,
    before: [],
    watched: new Map(),
    touched: undefined,
    hasFollower: false,
    isLast: false,
    isMoving: false,
  }
}

/** Notes how a node stands in its queue; undefined when it is not there. */
export function notePlace(node: OwnNode, contenders: readonly Contender[]): Place | undefined {
  const index = contenders.findIndex(({ name }) => name === node.name)
  if (index < 0) return undefined
  const place = placeOf(contenders, index)
  node.isLast = index === contenders.length - 1
  if (place.state === 'free') {
    node.isFree = true
    node.hasFollower = hasFollower(contenders, index)
  } else if (place.state === 'blocked') {
    node.ahead = place.ahead
    node.before = place.watch
  }
  return place
}

/** The full path of a node that has its name, without its twins. */
export function pathOf({ parent, name }: OwnNode): string {
  return `${parent}/${name!}`
}

/** The full paths of a node and its twins, as far as they have names. */
export function pathsOf({ parent, name, twins }: Pick<OwnNode, 'parent' | 'name' | 'twins'>): string[] {
  return [name, ...twins].filter(each => each !== undefined).map(each => `${parent}/${each}`)
}

export function isFree({ nodes }: OwnRequest): boolean {
  return nodes.every(node => node.isFree)
}

/** Whether a request keeps all others out, and no contender stands behind it. */
export function isAlone({ nodes }: OwnRequest): boolean {
  return nodes.every(({ claim, isLast }) => claim.mode === 'exclusive' && isLast)
}

/** The keys of a request, for errors. */
export function keysOf({ request: { claims } }: OwnRequest): string {
  return claims.map(({ key }) => key).join(', ')
}
