import type { Wait } from 'signalbox/reports'
import type { PartyView, Who } from '../messages.js'

/** Maximum number of nodes that are drawn. */
const MAX_NODES = 150

/** A session, or several that wait for the same sessions on the same keys and block no others. */
export interface Node {
  readonly id: string
  readonly sessions: readonly Who[]
  /** Whether it is in a cycle. */
  readonly isStuck: boolean
  /** The column; 0 if it waits for no other node. */
  readonly column: number
  /** The position in the column. */
  readonly line: number
}

/** A session waits for another. */
export interface Edge {
  readonly from: Node
  readonly to: Node
  readonly keys: readonly string[]
  readonly isStuck: boolean
}

/** The nodes and edges to draw. */
export interface WaitGraph {
  readonly nodes: readonly Node[]
  readonly edges: readonly Edge[]
  readonly columns: number
  readonly lines: number
  /** Number of nodes that are omitted. */
  readonly left: number
}

/** One session waits for another on some keys. */
interface Link {
  readonly from: string
  readonly to: string
  readonly keys: Set<string>
}

/** Lays out waits in columns: the sessions that wait for a session are to its right. */
export function waitGraphOf(
  waits: readonly Wait<PartyView>[],
  cycles: readonly (readonly string[])[],
): WaitGraph {
  const stuck = new Set(
    cycles.flatMap(cycle => cycle.map((from, at) => pair(from, cycle[(at + 1) % cycle.length]!))),
  )
  const stuckSessions = new Set(cycles.flat())
  const who = new Map<string, Who>()
  const links = linksOf(waits, who)
  const groups = grouped(links, who)
  const columns = columnsOf(groups)
  const all = [...groups.members.keys()].sort((a, b) => columns.get(a)! - columns.get(b)!)
  // The sessions in a cycle come first, then those in the first columns.
  const shown = all
    .sort(
      (a, b) =>
        Number(stuckSessions.has(b)) - Number(stuckSessions.has(a)) || columns.get(a)! - columns.get(b)!,
    )
    .slice(0, MAX_NODES)
  const nodes = placed(shown, groups, columns, stuckSessions)
  const edges = groups.links.flatMap(({ from, to, keys }): Edge[] => {
    const [source, target] = [nodes.get(from), nodes.get(to)]
    if (!source || !target) return []
    return [{ from: source, to: target, keys: [...keys], isStuck: stuck.has(pair(from, to)) }]
  })
  return {
    nodes: [...nodes.values()],
    edges,
    columns: Math.max(0, ...[...nodes.values()].map(({ column }) => column + 1)),
    lines: Math.max(0, ...[...nodes.values()].map(({ line }) => line + 1)),
    left: all.length - shown.length,
  }
}

/** Joins the waits between the same two sessions. */
function linksOf(waits: readonly Wait<PartyView>[], who: Map<string, Who>): Link[] {
  const links = new Map<string, Link>()
  for (const { key, waiter, blocker } of waits) {
    if (waiter.session === blocker.session) continue
    const id = pair(waiter.session, blocker.session)
    who.set(waiter.session, waiter)
    who.set(blocker.session, blocker)
    const known = links.get(id)
    if (known) known.keys.add(key)
    else links.set(id, { from: waiter.session, to: blocker.session, keys: new Set([key]) })
  }
  return [...links.values()]
}

interface Groups {
  /** By the ID of the node. */
  readonly members: ReadonlyMap<string, readonly Who[]>
  readonly links: readonly Link[]
}

/** Merges sessions that block no others and wait for the same sessions on the same keys into one node. */
function grouped(links: readonly Link[], who: ReadonlyMap<string, Who>): Groups {
  const blockers = new Set(links.map(({ to }) => to))
  const out = new Map<string, Link[]>()
  for (const link of links) {
    const others = out.get(link.from)
    if (others) others.push(link)
    else out.set(link.from, [link])
  }
  const firstOf = new Map<string, string>()
  const members = new Map<string, Who[]>()
  for (const [session, one] of who) {
    if (blockers.has(session)) {
      members.set(session, [one])
      continue
    }
    const signature = JSON.stringify(
      out
        .get(session)!
        .map(({ to, keys }) => [to, [...keys].sort()])
        .sort(),
    )
    const first = firstOf.get(signature) ?? session
    firstOf.set(signature, first)
    members.set(first, [...(members.get(first) ?? []), one])
  }
  return { members, links: links.filter(({ from }) => members.has(from)) }
}

function columnsOf({ members, links }: Groups): ReadonlyMap<string, number> {
  const blockersOf = new Map<string, string[]>()
  for (const { from, to } of links) blockersOf.set(from, [...(blockersOf.get(from) ?? []), to])
  const columns = new Map<string, number>()
  const path = new Set<string>()
  const visit = (id: string): number => {
    const known = columns.get(id)
    if (known !== undefined) return known
    path.add(id)
    // A cycle has no first column, so the wait that closes it is ignored.
    const before = (blockersOf.get(id) ?? []).filter(blocker => !path.has(blocker))
    const column = before.length === 0 ? 0 : 1 + Math.max(...before.map(visit))
    path.delete(id)
    columns.set(id, column)
    return column
  }
  for (const id of members.keys()) visit(id)
  return columns
}

function placed(
  shown: readonly string[],
  { members, links }: Groups,
  columns: ReadonlyMap<string, number>,
  stuck: ReadonlySet<string>,
): ReadonlyMap<string, Node> {
  const nodes = new Map<string, Node>()
  const blockersOf = new Map<string, string[]>()
  for (const { from, to } of links) blockersOf.set(from, [...(blockersOf.get(from) ?? []), to])
  const last = Math.max(0, ...shown.map(id => columns.get(id)!))
  for (let column = 0; column <= last; column++) {
    const here = shown
      .filter(id => columns.get(id) === column)
      .map(id => {
        const lines = (blockersOf.get(id) ?? []).flatMap(blocker => nodes.get(blocker)?.line ?? [])
        return {
          id,
          wish: lines.length === 0 ? 0 : lines.reduce((sum, line) => sum + line, 0) / lines.length,
        }
      })
      .sort((a, b) => a.wish - b.wish)
    let line = 0
    for (const { id, wish } of here) {
      line = Math.max(line, Math.floor(wish))
      nodes.set(id, { id, sessions: members.get(id)!, isStuck: stuck.has(id), column, line: line++ })
    }
  }
  return nodes
}

function pair(from: string, to: string): string {
  return `${from}\0${to}`
}
