import type { Figures } from './figures.js'
import type { Setting } from './setting.js'

const HEADING = ['strategy', 'calls', 'of ideal', 'worst window', 'worst second', 'idle seconds', 'order']

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
  ])
  const widths = HEADING.map((heading, column) =>
    Math.max(heading.length, ...lines.map(line => line[column]!.length)),
  )
  const text = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd()
  return [`${title}:`, text(HEADING), ...lines.map(text), ''].join('\n')
}
