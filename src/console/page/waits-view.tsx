import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Who } from '../messages.js'
import { useShared } from './context.js'
import { Empty, Heading, KeyLink, SessionLink } from './parts.js'
import { hashOf } from './route.js'
import { count, nameOf, placeOf, span } from './text.js'
import { VirtualList } from './virtual-list.js'
import { waitGraphOf, type Edge, type Node, type WaitGraph } from './wait-graph.js'

const BOX = { width: 190, height: 52 }
const GAP = { x: 130, y: 22 }
const MARGIN = 26

/** Who waits for whom, as a drawing and as sentences. */
export function WaitsView(): JSX.Element {
  const { overview, now } = useShared()
  const { waits, cycles, sessions, waiters } = overview
  const graph = useMemo(() => waitGraphOf(waits, cycles), [waits, cycles])
  const nameIn = (session: string): string => nameOf(sessions.get(session)!.who)
  return (
    <>
      <Heading>Who waits for whom</Heading>
      <p class="summary">
        {count(waiters, 'waiter')}
        {graph.left > 0 && `; ${count(graph.left, 'session')} are not drawn`}
      </p>
      {cycles.map(cycle => (
        <p class="failure" key={cycle.join(' ')}>
          <strong>Possible deadlock:</strong> {[...cycle, cycle[0]!].map(nameIn).join(' → ')}. If it stays, release
          one of their locks.
        </p>
      ))}
      {waits.length === 0 ? (
        <Empty>Nobody waits.</Empty>
      ) : (
        <>
          <Drawing graph={graph} />
          <section aria-labelledby="pairs">
            <h2 id="pairs">In words</h2>
            <VirtualList
              items={waits}
              label="Waits"
              keyOf={({ key, waiter, blocker }, index) => `${key} ${waiter.session} ${blocker.session} ${index}`}
              heights={[60, 132]}
              row={({ key, waiter, blocker, holds }) => (
                <div class="wait">
                  <SessionLink who={waiter} />
                  <span class="for">
                    waits {span(now - waiter.since)} for <KeyLink name={key} />, {holds ? 'held by' : 'behind'}
                  </span>
                  <SessionLink who={blocker} />
                </div>
              )}
            />
          </section>
        </>
      )}
    </>
  )
}

function Drawing({ graph: { nodes, edges, columns, lines } }: { readonly graph: WaitGraph }): JSX.Element {
  const width = 2 * MARGIN + columns * BOX.width + Math.max(0, columns - 1) * GAP.x
  const height = 2 * MARGIN + lines * (BOX.height + GAP.y) - GAP.y
  return (
    <div class="drawing" role="group" tabIndex={0} aria-label="Drawing of who waits for whom">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {edges.map(edge => (
          <Line key={`${edge.from.id} ${edge.to.id}`} edge={edge} />
        ))}
        {nodes.map(node => (
          <Box key={node.id} node={node} />
        ))}
      </svg>
    </div>
  )
}

function Line({ edge: { from, to, keys, isStuck } }: { readonly edge: Edge }): JSX.Element {
  const start = cornerOf(from)
  const end = cornerOf(to)
  const [y1, y2] = [start.y + BOX.height / 2, end.y + BOX.height / 2]
  const isBack = from.column <= to.column
  // A line back, which only a cycle has, leaves to the right and goes around.
  const x1 = isBack ? start.x + BOX.width : start.x
  const x2 = end.x + BOX.width
  const bend = isBack ? Math.max(x1, x2) + GAP.x * 0.7 : (x1 + x2) / 2
  const [firstKey, ...others] = keys
  const label = `${short(firstKey!, 16)}${others.length > 0 ? ` +${others.length}` : ''}`
  const shift = isBack ? 12 : 0
  return (
    <g class={isStuck ? 'edge stuck' : 'edge'}>
      <path d={`M${x1} ${y1 - shift} C${bend} ${y1 - shift} ${bend} ${y2 - shift} ${x2} ${y2 - shift}`} marker-end="url(#arrow)" />
      <text x={isBack ? bend - GAP.x * 0.3 : bend} y={(y1 + y2) / 2 - shift - 6} text-anchor="middle">
        <title>{keys.join(', ')}</title>
        {label}
      </text>
    </g>
  )
}

function Box({ node }: { readonly node: Node }): JSX.Element {
  const { x, y } = cornerOf(node)
  const [first] = node.sessions
  const isGroup = node.sessions.length > 1
  const title = isGroup ? count(node.sessions.length, 'session') : short(nameOf(first!), 22)
  const detail = isGroup ? short(node.sessions.map(nameOf).join(', '), 28) : short(placeOf(first!), 28)
  const box = (
    <>
      <title>{titleOf(node.sessions)}</title>
      <rect x={x} y={y} width={BOX.width} height={BOX.height} rx={10} />
      <text class="name" x={x + 14} y={y + 22}>
        {title}
      </text>
      <text class="place" x={x + 14} y={y + 39}>
        {detail}
      </text>
    </>
  )
  const kind = node.isStuck ? 'node stuck' : node.column === 0 ? 'node root' : 'node'
  if (isGroup || first!.session === '') return <g class={kind}>{box}</g>
  return (
    <a class={kind} href={hashOf({ view: 'session', session: first!.session })} aria-label={titleOf([first!])}>
      {box}
    </a>
  )
}

function titleOf(sessions: readonly Who[]): string {
  return sessions
    .slice(0, 20)
    .map(who => `${nameOf(who)} (${placeOf(who)})`)
    .join(', ')
}

function cornerOf({ column, line }: Node): { x: number; y: number } {
  return { x: MARGIN + column * (BOX.width + GAP.x), y: MARGIN + line * (BOX.height + GAP.y) }
}

function short(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
