import type { Claim } from 'signalbox'
import { guidOf, isTwin } from './names.js'

/** A node in the queue of a key, of this library or another. */
export interface Contender {
  readonly name: string
  /** Further nodes for other libraries to count, which are created and deleted with it. */
  readonly twins: readonly string[]
  /** The number that the server has assigned: an int32, which wraps around. */
  readonly sequence: number
  readonly mode: Claim['mode']
  /** 0 if the mode is not `permits`. */
  readonly permits: number
  readonly max: number
}

/** The position of a contender in its queue. */
export type Position =
  /** No contender ahead blocks it. */
  | { readonly state: 'free' }
  /** It can't be free before one of these nodes changes; being touched counts as a change, too. */
  | { readonly state: 'blocked'; readonly watch: readonly string[]; readonly ahead: number }
  /** The key is in use with another maximum of permits. */
  | { readonly state: 'mismatch'; readonly max: number }

/** Names of Curator, kazoo and this library. A negative number has nine or ten digits after the sign. */
const PERMITS = /-(\d+)of(\d+)-lock-(-?\d{9,10})$/
const EXCLUSIVE = /(?:-lock-|__lock__|__WRIT__|-latch-)(-?\d{9,10})$/
const SHARED = /(?:-__READ__|__rlock__)(-?\d{9,10})$/

/** Parses the name of a child; undefined if it is not a contender. */
function contenderOf(name: string): Contender | undefined {
  const permits = PERMITS.exec(name)
  if (permits) {
    const [, taken, max, sequence] = permits
    return contender(name, sequence!, 'permits', Number(taken), Number(max))
  }
  const exclusive = EXCLUSIVE.exec(name)
  if (exclusive) return contender(name, exclusive[1]!, 'exclusive')
  const shared = SHARED.exec(name)
  if (shared) return contender(name, shared[1]!, 'shared')
  return undefined
}

function contender(name: string, digits: string, mode: Claim['mode'], permits = 0, max = 0): Contender {
  return { name, twins: [], sequence: Number(digits), mode, permits, max }
}

/**
 * Groups each node with its twins as one contender, in the place of the node. No other contender can be between them,
 * because they are created together. Twins whose node was deleted still block others.
 */
function grouped(nodes: readonly Contender[], twins: ReadonlyMap<string, readonly Contender[]>): Contender[] {
  const alone = new Map(twins)
  const contenders = nodes.map(node => {
    const guid = guidOf(node.name)
    const own = guid === undefined ? undefined : alone.get(guid)
    if (!own) return node
    alone.delete(guid!)
    return together(node, inOrder(own))
  })
  for (const own of alone.values()) {
    const [first, ...others] = inOrder(own)
    contenders.push(together(first!, others))
  }
  return contenders
}

function together(first: Contender, others: readonly Contender[]): Contender {
  return { ...first, twins: others.map(({ name }) => name) }
}

/**
 * Sorts contenders, oldest first. Numbers wrap around at 2^31, so the older of two is the one from which the other is
 * reached sooner. That holds as long as fewer than 2^31 are between them.
 */
function inOrder(contenders: readonly Contender[]): Contender[] {
  return [...contenders].sort((a, b) => (a.sequence - b.sequence) | 0)
}

/** The contenders among a node's children, oldest first. */
export function contendersOf(children: readonly string[]): Contender[] {
  const nodes: Contender[] = []
  const twins = new Map<string, Contender[]>()
  for (const name of children) {
    const contender = contenderOf(name)
    if (!contender) continue
    if (!isTwin(name)) nodes.push(contender)
    else {
      const guid = guidOf(name)!
      const others = twins.get(guid)
      if (others) others.push(contender)
      else twins.set(guid, [contender])
    }
  }
  return inOrder(twins.size === 0 ? nodes : grouped(nodes, twins))
}

/** The position of the contender at an index. Later contenders never matter, so one that is free stays free. */
export function positionOf(contenders: readonly Contender[], index: number): Position {
  const own = contenders[index]!
  const blocked = (watch: readonly Contender[]): Position => ({
    state: 'blocked',
    watch: watch.map(({ name }) => name),
    ahead: index,
  })
  if (own.mode === 'exclusive') return index === 0 ? { state: 'free' } : blocked([contenders[index - 1]!])
  const before = contenders.slice(0, index)
  const blocker = before.findLast(({ mode }) => mode !== own.mode)
  if (own.mode === 'shared') return blocker ? blocked([blocker]) : { state: 'free' }
  const other = before.find(({ mode, max }) => mode === 'permits' && max !== own.max)
  if (other) return { state: 'mismatch', max: other.max }
  if (blocker) return blocked([blocker])
  const taken = before.reduce((sum, { permits }) => sum + permits, 0)
  if (taken + own.permits <= own.max) return { state: 'free' }
  // All contenders ahead of the first waiter have their permits, so that waiter watches all of them. Each later waiter
  // watches only the one ahead of it, which is touched when it gets its permits.
  const last = before.at(-1)!
  return taken <= own.max ? blocked(before) : blocked([last])
}

/** Whether the next contender may wait for permits, and for a touch of this one. */
export function hasFollower(contenders: readonly Contender[], index: number): boolean {
  return contenders[index]!.mode === 'permits' && contenders[index + 1]?.mode === 'permits'
}
