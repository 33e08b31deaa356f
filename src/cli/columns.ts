import { printable } from '../base/printable.js'

/** @param rightAligned indexes of the columns that are aligned to the right. */
export function columns(texts: readonly (readonly string[])[], rightAligned: readonly number[]): string {
  const lines = texts.map(cells => cells.map(printable))
  const widths = (lines[0] ?? []).map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, line[column]!.length), 0),
  )
  return lines
    .map(line => {
      const cells = line.map((cell, column) =>
        rightAligned.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      return `${cells.join('  ').trimEnd()}\n`
    })
    .join('')
}
