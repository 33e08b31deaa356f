/**
 * Lines of cells as text in columns, two blanks apart.
 * @param toTheRight which columns are aligned to the right, by number from 0.
 */
export function columns(lines: readonly (readonly string[])[], toTheRight: readonly number[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  return lines
    .map(line => {
      const cells = line.map((cell, column) =>
        toTheRight.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      return `${cells.join('  ').trimEnd()}\n`
    })
    .join('')
}
