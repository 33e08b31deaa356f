import type { Timer } from '../../clock.js'
import type { Claim } from '../../engine/claim.js'
import type { LockRequest } from '../../engine/contract.js'
import type { WatchListener, ZooKeeper } from './client/index.js'

/** One node of a request: its place in the queue of one key. */
export interface OwnNode {
  readonly claim: Claim
  /** The node whose children contend. */
  readonly parent: string
  /** Undefined until the server has named it; another one after a downgrade. */
  name: string | undefined
  /** The names of the nodes beside it that others count; none without a bridge. */
  twins: readonly string[]
  /** Whether nobody before it keeps it out: then it stays so. */
  isFree: boolean
  /** How many stood before it at the last look. */
  ahead: number
  /** Those that keep it out, as far as it has to look at them. */
  before: readonly string[]
  /** Those whose changes are told, and to whom. */
  readonly watched: Map<string, WatchListener>
  /** One of those, which had been touched when it was looked at. */
  touched: string | undefined
  /** Whether somebody behind it waits for a sign that it got in. */
  hasFollower: boolean
  /** Whether nobody stood behind it at the last look. */
  isLast: boolean
  /** Whether it is being replaced by another one of the same number. */
  isMoving: boolean
}

/** A request of this session. */
export interface OwnRequest {
  readonly id: string
  /** By which its nodes are found when the answer to their creation was lost; another one in each session. */
  guid: string
  readonly label: string | undefined
  readonly claims: readonly Claim[]
  nodes: readonly OwnNode[]
  /** Of the client whose session its nodes end with. */
  client: ZooKeeper | undefined
  /** `entering` while its nodes are created; `free` when it can be claimed; `gone` when its nodes are to vanish. */
  phase: 'entering' | 'waiting' | 'free' | 'held' | 'gone'
  /** The transaction that created its nodes. */
  number: number
  lease: number
  /** How often the creation of its nodes was lost with the connection. */
  losses: number
  /** Settles when it has been entered, or could not be; later when its nodes have been replaced by a downgrade. */
  entered: Promise<unknown>
  /** Ends it unless it is heard of. */
  timer: Timer | undefined
  /** Ends the time for which it can be vouched for that nobody else waits. */
  alone: Timer | undefined
  /** Is told when somebody else comes, or may have come. */
  wanted: (() => void) | undefined
  /** Whether a look at the queues is under way, and another one wanted. */
  looking: boolean
  lookAgain: boolean
}

/** A request that has not been entered. */
export function newRequest(
  { id, claims, label }: LockRequest,
  lease: number,
  guid: string,
  parentOf: (key: string) => string,
): OwnRequest {
  return {
    id,
    guid,
    label,
    claims,
    nodes: claims.map(claim => newNode(claim, parentOf(claim.key))),
    client: undefined,
    phase: 'entering',
    number: 0,
    lease,
    losses: 0,
    entered: Promise.resolve(),
    timer: undefined,
    alone: undefined,
    wanted: undefined,
    looking: false,
    lookAgain: false,
  }
}

/** Forgets what became of a request that is still to be entered in the session that has ended. */
export function beginAnew(request: OwnRequest, guid: string): void {
  request.guid = guid
  request.nodes = request.nodes.map(({ claim, parent }) => newNode(claim, parent))
}

/** Takes back what is still watched for a request that nothing before it keeps out any more, or that is over. */
export function unwatch({ client, nodes }: OwnRequest): void {
  for (const { parent, watched } of nodes) {
    for (const [name, watch] of watched) client!.unwatch(`${parent}/${name}`, watch)
    watched.clear()
  }
}

/** A node that is not there yet. */
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

/** The full path of a node that has its name, without its twins. */
export function pathOf({ parent, name }: OwnNode): string {
  return `${parent}/${name!}`
}

/** The full paths of a node and its twins, as far as they have names. */
export function pathsOf({ parent, name, twins }: Pick<OwnNode, 'parent' | 'name' | 'twins'>): string[] {
  return [name, ...twins].filter(each => each !== undefined).map(each => `${parent}/${each}`)
}
