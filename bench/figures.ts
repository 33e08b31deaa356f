/**
 * Formats a number with three significant digits and thousands separators.
 * @param value null in the JSON of a report stands for an infinite value.
 */
export function figure(value: number | null): string {
  if (value === null) return '∞'
  if (value === 0) return '0'
  const digits = Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0)
  return Number(value.toFixed(Math.min(digits, 4))).toLocaleString('en-US', { maximumFractionDigits: 4 })
}

/** Formats a part of a whole in percent. */
export function percent(value: number): string {
  return `${(value * 100).toFixed(0)} %`
}
