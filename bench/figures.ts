/**
 * A number for people: three digits that matter, thousands set apart. @param value null in JSON where it is infinite.
 */
export function figure(value: number | null): string {
  if (value === null) return '∞'
  if (value === 0) return '0'
  const digits = Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0)
  return Number(value.toFixed(Math.min(digits, 4))).toLocaleString('en-US', { maximumFractionDigits: 4 })
}

/** Part of a whole, in percent. */
export function percent(value: number): string {
  return `${(value * 100).toFixed(0)} %`
}
