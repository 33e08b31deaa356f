import type { Claim } from '../../engine/claim.js'
import { guidOf, isTwin } from './names.js'

/** A node in the queue of a key, of this library or another. */
export interface Contender {
  readonly name: string
  /** The nodes beside it that others count, which come and go with it. */
  readonly twins: readonly string[]
  /** The number that the server gave it: an int32, which wraps. */
  readonly sequence: number
  readonly mode: Claim['mode']
  /** 0 where it does not take permits. */
  readonly permits: number
  readonly max: number
}

/** How a contender stands among the others. */
export type Position =
  /** No contender before it keeps it out. */
  | { readonly state: 'free' }
  /** Something about these nodes has to change before it can be free: `touched` counts as a change, too. */
  | { readonly state: 'blocked'; readonly watch: readonly string[]; readonly ahead: number }
  /** The key is live with another number of permits. */
  | { readonly state: 'mismatch'; readonly max: number }

/** Names of Curator, of kazoo and of this library; a number below 0 has nine digits or ten after its sign. */
const PERMITS = /-(\d+)of(\d+)-lock-(-?\d{9,10})$/
const EXCLUSIVE = /(?:-lock-|__lock__|__WRIT__|-latch-)(-?\d{9,10})$/
const SHARED = /(?:-__READ__|__rlock__)(-?\d{9,10})$/

/** What a child is in the queue; undefined for one that is no contender. */
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
 * A node and its twins are one contender, which stands where the first of them does. No other contender comes in
 * between, because they are created together. Twins whose node was deleted are still in the way.
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
 * The first one first. The numbers go round at 2^31, so what counts is which of two is reached sooner from the other;
 * that holds as long as fewer than 2^31 stand between them.
 */
function inOrder(contenders: readonly Contender[]): Contender[] {
  return [...contenders].sort((a, b) => (a.sequence - b.sequence) | 0)
}

/** The contenders among a node's children, the first one first. */
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

/** How the contender at an index stands. Later contenders never matter, so one that is free stays so. */
export function positionOf(contenders: readonly Contender[], index: number): Position {
  const own = contenders[index]!
  const before = contenders.slice(0, index)
  const blocked = (watch: readonly Contender[]): Position => ({
    state: 'blocked',
    watch: watch.map(({ name }) => name),
    ahead: index,
  })
  if (own.mode === 'exclusive') return index === 0 ? { state: 'free' } : blocked(before.slice(-1))
  const inTheWay = before.findLast(({ mode }) => mode !== own.mode)
  if (own.mode === 'shared') return inTheWay ? blocked([inTheWay]) : { state: 'free' }
  const other = before.find(({ mode, max }) => mode === 'permits' && max !== own.max)
  if (other) return { state: 'mismatch', max: other.max }
  if (inTheWay) return blocked([inTheWay])
  const taken = before.reduce((sum, { permits }) => sum + permits, 0)
  if (taken + own.permits <= own.max) return { state: 'free' }
  // All contenders before the first waiter have their permits, so only that waiter looks at all of them. Each later
  // one looks at the one before it, which is touched when it gets in.
  const last = before.at(-1)!
  return taken <= own.max ? blocked(before) : blocked([last])
}

/** Whether the contender behind this one may wait for permits, and for a sign that this one got in. */
export function hasFollower(contenders: readonly Contender[], index: number): boolean {
  return contenders[index]!.mode === 'permits' && contenders[index + 1]?.mode === 'permits'
}
