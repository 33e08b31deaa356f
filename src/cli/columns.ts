import { printable } from './printable.js'

/**
 * Lines of cells as printable text in columns, two blanks apart.
 * @param toTheRight which columns are aligned to the right, by number from 0.
 */
export function columns(texts: readonly (readonly string[])[], toTheRight: readonly number[]): string {
  const lines = texts.map(cells => cells.map(printable))
  const widths = (lines[0] ?? []).map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, line[column]!.length), 0),
  )
  return lines
    .map(line => {
      const cells = line.map((cell, column) =>
        toTheRight.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      return `${cells.join('  ').trimEnd()}\n`
    })
    .join('')
}
