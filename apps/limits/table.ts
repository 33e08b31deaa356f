import { columns } from '../../src/cli/columns.js'
import type { Figures } from './figures.js'
import type { Setting } from './setting.js'

const HEADING = [
  'strategy',
  'calls',
  'of ideal',
  'worst window',
  'worst second',
  'idle seconds',
  'order',
  'guard',
]
/** The columns after the one with the names. */
const FIGURES = [...HEADING.keys()].slice(1)

/** The figures of one scenario as text. A window above the limit is marked. */
export function table(title: string, { limit }: Setting, all: readonly Figures[]): string {
  const lines = all.map(one => [
    one.name,
    String(one.calls),
    `${((100 * one.calls) / one.ideal).toFixed(0)} %`,
    `${one.worstWindow}${one.worstWindow > limit ? ' !' : '  '}`,
    String(one.worstCalendarSecond),
    String(one.idleSeconds),
    one.orderKept ? 'kept' : 'lost',
    one.guard === undefined ? '' : `${one.guard} ms`,
  ])
  return `${title}:\n${columns([HEADING, ...lines], FIGURES)}`
}
