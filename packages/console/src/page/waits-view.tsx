import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, span } from '../page-kit/browser/text.js'
import type { Who } from '../messages.js'
import { useShared } from './context.js'
import { lastingCycles } from './model.js'
import { KeyLink, SessionLink } from './parts.js'
import { hashOf } from './route.js'
import { nameOf, placeOf } from './text.js'
import { usePhone, VirtualList } from './virtual-list.js'
import { waitGraphOf, type Edge, type Node, type WaitGraph } from './wait-graph.js'

/** Sizes of the drawing in pixels, maximum number of characters in a box, and minimum scale for a narrow page. */
interface Sizes {
  readonly width: number
  readonly gap: number
  readonly margin: number
  readonly characters: number
  readonly minScale: number
}

const WIDE: Sizes = { width: 190, gap: 130, margin: 26, characters: 22, minScale: 0.75 }
const SMALL: Sizes = { width: 116, gap: 64, margin: 10, characters: 12, minScale: 1 }
const BOX_HEIGHT = 52
const GAP_Y = 30
/** Space above the boxes for the arcs of cycles. */
const TOP = 48

/** The sessions that wait for each other, as a drawing and as sentences. */
export function WaitsView(): JSX.Element {
  const { overview, now } = useShared()
  const { waits, sessions, waiters } = overview
  const cycles = lastingCycles(overview, now)
  const graph = useMemo(() => waitGraphOf(waits, cycles), [waits, cycles.length])
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
          <strong>Possible deadlock:</strong> {[...cycle, cycle[0]!].map(nameIn).join(' → ')}. If it stays,
          release one of their locks.
        </p>
      ))}
      {waits.length === 0 ? (
        <Empty>No waiters</Empty>
      ) : (
        <>
          <Drawing graph={graph} />
          <section aria-labelledby="pairs">
            <h2 id="pairs">In words</h2>
            <VirtualList
              items={waits}
              label="Waits"
              keyOf={({ key, waiter, blocker }, index) =>
                `${key} ${waiter.session} ${blocker.session} ${index}`
              }
              heights={[60, 132]}
              row={({ key, waiter, blocker, holds }) => (
                <div class="wait">
                  <SessionLink who={waiter} />
                  <span class="for">
                    waits {span(now - waiter.since)} for <KeyLink name={key} />,{' '}
                    {holds ? 'held by' : 'behind'}
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
  const sizes = usePhone() ? SMALL : WIDE
  const width = 2 * sizes.margin + columns * sizes.width + Math.max(0, columns - 1) * sizes.gap
  const height = TOP + lines * (BOX_HEIGHT + GAP_Y)
  return (
    <>
      <div class="drawing" role="group" tabIndex={0} aria-label="Drawing of who waits for whom">
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          style={{ minWidth: `${Math.round(width * sizes.minScale)}px` }}
        >
          <defs>
            <marker
              id="arrow"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0 0 8 4 0 8z" />
            </marker>
          </defs>
          {edges.map(edge => (
            <path
              key={`${edge.from.id} ${edge.to.id}`}
              class={edge.isStuck ? 'edge stuck' : 'edge'}
              d={lineOf(edge, sizes).path}
              marker-end="url(#arrow)"
            />
          ))}
          {nodes.map(node => (
            <Box key={node.id} node={node} sizes={sizes} />
          ))}
          {edges.map(edge => (
            <Label key={`${edge.from.id} ${edge.to.id}`} edge={edge} sizes={sizes} />
          ))}
        </svg>
      </div>
      {columns > (sizes === SMALL ? 2 : 4) && (
        <p class="hint">Scroll the drawing sideways to see all of it.</p>
      )}
    </>
  )
}

/** Returns the path of an edge, and the position of its text. */
function lineOf({ from, to }: Edge, sizes: Sizes): { path: string; x: number; y: number } {
  const start = cornerOf(from, sizes)
  const end = cornerOf(to, sizes)
  const half = BOX_HEIGHT / 2
  if (from.column > to.column) {
    const [x1, y1, x2, y2] = [start.x, start.y + half, end.x + sizes.width, end.y + half]
    const middle = (x1 + x2) / 2
    return {
      path: `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`,
      x: middle,
      y: (y1 + y2) / 2 - 6,
    }
  }
  if (from.column === to.column) {
    const [x, y1, y2] = [start.x + sizes.width, start.y + half, end.y + half]
    const bend = x + sizes.gap / 2
    return { path: `M${x} ${y1} C${bend} ${y1} ${bend} ${y2} ${x} ${y2}`, x: bend, y: (y1 + y2) / 2 }
  }
  // Only an edge of a cycle leads to the right. It passes above the boxes.
  const [x1, x2] = [start.x + sizes.width / 2, end.x + sizes.width / 2]
  const top = Math.min(start.y, end.y) - 34
  return { path: `M${x1} ${start.y} C${x1} ${top} ${x2} ${top} ${x2} ${end.y}`, x: (x1 + x2) / 2, y: top + 8 }
}

function Label({ edge, sizes }: { readonly edge: Edge; readonly sizes: Sizes }): JSX.Element {
  const [first, ...others] = edge.keys
  const { x, y } = lineOf(edge, sizes)
  const length = Math.floor(sizes.gap / 8)
  return (
    <text class={edge.isStuck ? 'edge-label stuck' : 'edge-label'} x={x} y={y} text-anchor="middle">
      <title>{edge.keys.map(printable).join(', ')}</title>
      {short(printable(first!), length)}
      {others.length > 0 && ` +${others.length}`}
    </text>
  )
}

function Box({ node, sizes }: { readonly node: Node; readonly sizes: Sizes }): JSX.Element {
  const { x, y } = cornerOf(node, sizes)
  const { width, characters } = sizes
  const [first] = node.sessions
  const isGroup = node.sessions.length > 1
  const title = isGroup ? count(node.sessions.length, 'session') : nameOf(first!)
  const detail = isGroup ? node.sessions.map(nameOf).join(', ') : placeOf(first!)
  const box = (
    <>
      {isGroup && <title>{titleOf(node.sessions)}</title>}
      <rect x={x} y={y} width={width} height={BOX_HEIGHT} rx={10} />
      <text class="name" x={x + 12} y={y + 22}>
        {short(title, characters)}
      </text>
      <text class="place" x={x + 12} y={y + 39}>
        {short(detail, characters + 2)}
      </text>
    </>
  )
  const kind = node.isStuck ? 'node stuck' : node.column === 0 ? 'node root' : 'node'
  if (isGroup || first!.session === '') return <g class={kind}>{box}</g>
  return (
    <a class={kind} href={hashOf({ view: 'session', session: first!.session })}>
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

function cornerOf({ column, line }: Node, { width, gap, margin }: Sizes): { x: number; y: number } {
  return { x: margin + column * (width + gap), y: TOP + line * (BOX_HEIGHT + GAP_Y) }
}

function short(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
