import { columns } from '../../src/cli/columns.js'
import type { Figures } from './figures.js'
import type { Setting } from './setting.js'

const HEADING = [
  'strategy',
  'calls',
  'of ideal',
  'granted',
  'arrived',
  'worst second',
  'idle seconds',
  'order',
  'guard',
]
/** Indexes of the columns with figures. */
const FIGURES = [...HEADING.keys()].slice(1)

/** Explains the columns that are not self-explanatory. */
export const LEGEND = `granted: the most calls that a strategy let through in any second, by its own clock
arrived: the most calls that reached the service in any second
!: above the limit. Where only "arrived" has it, the strategy kept the limit, and the machine or the network
delayed some calls on their way to the service
`

/** Formats the figures of one scenario as text. Marks a window above the limit. */
export function table(title: string, { limit }: Setting, all: readonly Figures[]): string {
  const lines = all.map(one => [
    one.name,
    String(one.calls),
    `${((100 * one.calls) / one.ideal).toFixed(0)} %`,
    marked(one.worstGranted, limit),
    marked(one.worstWindow, limit),
    String(one.worstCalendarSecond),
    String(one.idleSeconds),
    one.orderKept ? 'kept' : 'lost',
    one.guard === undefined ? '' : `${one.guard} ms`,
  ])
  return `${title}:\n${columns([HEADING, ...lines], FIGURES)}`
}

function marked(worst: number, limit: number): string {
  return `${worst}${worst > limit ? ' !' : '  '}`
}
