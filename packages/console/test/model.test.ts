import { expect, test } from 'vitest'
import type { KeyView, PartyView } from '../src/messages.js'
import { lastingCycles, modelAfter, overviewOf, type Overview } from '../src/page/model.js'
import { hashOf, routeOf, type Route } from '../src/page/route.js'
import { waitGraphOf, type WaitGraph } from '../src/page/wait-graph.js'

function party(session: string, token?: string): PartyView {
  const claim = { key: 'k', mode: 'exclusive' } as const
  return {
    session,
    host: 'vm',
    pid: 7,
    label: undefined,
    claim,
    since: 0,
    ...(token !== undefined && { token }),
  }
}

/** Returns the graph that is drawn once the waits have lasted long enough. */
function drawn(overview: Overview): WaitGraph {
  return waitGraphOf(overview.waits, lastingCycles(overview, 60_000))
}

/** Returns a key with its holder and its waiters. */
function view(key: string, holder: string, ...waiters: readonly string[]): KeyView {
  return { key, holders: [party(holder, `${key} ${holder}`)], waiters: waiters.map(waiter => party(waiter)) }
}

function keysOf(...views: readonly KeyView[]): ReadonlyMap<string, KeyView> {
  return new Map(views.map(each => [each.key, each]))
}

test('a change replaces, adds and removes keys, and keeps the rest', () => {
  const events = [{ number: 1, at: 1, key: 'a', kind: 'granted', who: party('x') }] as const
  const state = modelAfter(undefined, {
    type: 'state',
    at: 0,
    engine: 'memory:',
    readOnly: false,
    hasDoctor: false,
    since: 0,
    keys: [view('a', 'x'), view('b', 'x')],
    limiters: [],
    events,
  })!
  const later = modelAfter(state, {
    type: 'change',
    at: 1,
    keys: [view('a', 'y'), view('c', 'y')],
    gone: ['b'],
    events: [{ ...events[0], number: 2 }],
  })!
  expect([...later.keys].map(([key, { holders }]) => [key, holders[0]!.session])).toEqual([
    ['a', 'y'],
    ['c', 'y'],
  ])
  expect(later.events.map(({ number }) => number)).toEqual([1, 2])
  // An update without changes keeps the same keys, so that nothing is drawn again.
  expect(modelAfter(later, { type: 'change', at: 2, keys: [], gone: [], events: [] })!.keys).toBe(later.keys)
  expect(modelAfter(later, { type: 'fault', at: 3, text: 'down' })).toBe(later)
})

test('keys are sorted by how many wait for them, also through other keys', () => {
  const { rows } = overviewOf(
    keysOf(
      view('idle', 'a'),
      view('hot', 'b', 'c', 'd', 'e'),
      // The waiter of this key holds the hot key.
      view('root', 'a', 'b'),
      view('other', 'f', 'g'),
    ),
  )
  expect(rows.map(({ view: { key }, inTheWayOf }) => `${key} ${inTheWayOf}`)).toEqual([
    'root 4',
    'hot 3',
    'other 1',
    'idle 0',
  ])
})

test('thousands of keys between two sessions are counted in a moment', () => {
  const views = Array.from({ length: 2000 }, (_, index) =>
    index % 2 === 0 ? view(`k${index}`, 'a', 'b') : view(`k${index}`, 'b', 'a'),
  )
  const { rows } = overviewOf(keysOf(...views, view('first', 'c', 'a', 'd')))
  expect(rows[0]).toMatchObject({ view: { key: 'first' }, inTheWayOf: 2002 })
  expect(new Set(rows.slice(1).map(({ inTheWayOf }) => inTheWayOf))).toEqual(new Set([2000]))
})

test('a deadlock is counted once and marked in the drawing', () => {
  const overview = overviewOf(keysOf(view('one', 'a', 'b', 'c'), view('two', 'b', 'a')))
  expect(overview.rows.map(({ inTheWayOf }) => inTheWayOf)).toEqual([3, 3])
  expect(overview.sessions.get('a')).toMatchObject({ holds: [['one', {}]], awaits: [['two', {}]] })
  const { nodes, edges } = drawn(overview)
  const stuck = nodes.filter(({ isStuck }) => isStuck).map(({ id }) => id)
  expect(stuck.sort()).toEqual(['a', 'b'])
  const pairs = edges.filter(({ isStuck }) => isStuck).map(({ from, to }) => `${from.id} ${to.id}`)
  expect(pairs.sort()).toEqual(['a b', 'b a'])
})

test('sessions that wait for each other for a moment are not reported', () => {
  const overview = overviewOf(keysOf(view('one', 'a', 'b'), view('two', 'b', 'a')))
  expect(lastingCycles(overview, 2999)).toEqual([])
  expect(lastingCycles(overview, 3000)).toHaveLength(1)
})

test('the drawing puts those that wait for the same into one box, in a column after the holder', () => {
  const { nodes, edges, columns } = drawn(
    overviewOf(keysOf(view('k', 'a', 'b', 'c', 'd'), view('other', 'd', 'e'))),
  )
  const boxes = nodes.map(
    ({ sessions, column }) => `${sessions.map(({ session }) => session).join('')} ${column}`,
  )
  expect(boxes.sort()).toEqual(['a 0', 'bc 1', 'd 1', 'e 2'])
  expect(columns).toBe(3)
  expect(edges).toHaveLength(3)
})

test('thousands of waiters are drawn in a few boxes, and a long chain is cut', () => {
  const waiters = Array.from({ length: 5000 }, (_, index) => `w${index}`)
  expect(drawn(overviewOf(keysOf(view('k', 'a', ...waiters)))).nodes).toHaveLength(2)
  const links = Array.from({ length: 500 }, (_, index) => view(`k${index}`, `s${index}`, `s${index + 1}`))
  const chain = overviewOf(keysOf(...links))
  expect(drawn(chain)).toMatchObject({ columns: 150, left: 351 })
  expect(chain.rows[0]).toMatchObject({ view: { key: 'k0' }, inTheWayOf: 500 })
})

test.each<Route>([
  { view: 'locks', search: '' },
  { view: 'locks', search: 'a/b #%?' },
  { view: 'key', key: '../<b>%2F ü' },
  { view: 'values', store: '', prefix: '', after: '' },
  { view: 'values', store: 'a', prefix: 'b/', after: '' },
  { view: 'values', store: 'a', prefix: '', after: 'b/' },
  { view: 'value', store: 'a', key: '../<b>%2F ü/' },
  { view: 'session', session: '_x-1' },
  { view: 'doctor' },
])('the address of %j leads back to it', route => {
  expect(routeOf(hashOf(route))).toEqual(route)
})

test('an address that is not valid shows the locks', () => {
  for (const hash of ['', '#', '#/', '#/nothing', '#secret=abc'])
    expect(routeOf(hash)).toMatchObject({ view: 'locks' })
  expect(routeOf('#/key/%E0%A4%A')).toEqual({ view: 'key', key: '%E0%A4%A' })
})
