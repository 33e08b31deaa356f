import type { TopLevelSpec } from 'vega-lite'
import { drawn } from '../drawing.js'
import type { History } from './history.js'

/** Period shown, in milliseconds. A longer one would be unreadable. */
const SHOWN = 30_000

/** Draws the first half minute of a run in SVG: which client held which lock, and the faults. */
export function picture({ requests, faults }: History): Promise<string> {
  const clientOf = (who: string): string => `client ${who.split('.')[0]!}`
  const grants = requests.flatMap(({ who, key, granted, heldUntil, left, end }) =>
    granted === undefined || granted > SHOWN
      ? []
      : [
          {
            row: key.slice(key.indexOf(':') + 1),
            from: granted / 1000,
            to: ((end === 'released' ? left : heldUntil) ?? granted) / 1000,
            client: clientOf(who),
          },
        ],
  )
  const marks = faults
    .filter(({ at }) => at <= SHOWN)
    .map(({ kind, client, at, until }) => ({
      row: 'faults',
      kind,
      from: at / 1000,
      to: until / 1000,
      client: client === undefined ? 'all' : `client ${client}`,
    }))
  const clients = [...new Set([...grants, ...marks].map(({ client }) => client))].sort()
  const x = { field: 'from', type: 'quantitative', title: 'seconds' } as const
  const y = {
    field: 'row',
    type: 'nominal',
    title: null,
    sort: [...new Set(grants.map(({ row }) => row)), 'faults'],
  } as const
  const color = { field: 'client', type: 'nominal', title: null, scale: { domain: clients } } as const
  const specification: TopLevelSpec = {
    background: 'white',
    title: 'Who held which lock, and what was done to whom',
    width: 900,
    height: { step: 40 },
    layer: [
      {
        data: { values: [...grants, ...marks] },
        mark: { type: 'bar', minBandSize: 1 },
        encoding: { x, x2: { field: 'to' }, y, color },
      },
      {
        data: { values: marks },
        mark: { type: 'tick', thickness: 2, height: 34, color: 'black' } as never,
        encoding: { x, y },
      },
      {
        data: { values: marks },
        mark: { type: 'text', align: 'left', angle: 300, dx: 4, dy: -14, fontSize: 9 },
        encoding: { x, y, text: { field: 'kind' } },
      },
    ],
  }
  return drawn(specification)
}
