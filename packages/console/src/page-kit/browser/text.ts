import { shortDuration } from 'signalbox/reports'

/** A number with its noun. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

/** A duration in whole seconds, so that it does not flicker; shorter ones in milliseconds. */
export function span(milliseconds: number): string {
  const whole = Math.max(0, milliseconds)
  return shortDuration(whole < 1000 ? whole : Math.floor(whole / 1000) * 1000).replace(/\.0s$/, 's')
}

/** A duration from a configuration, such as `1m`. */
export function period(milliseconds: number): string {
  return shortDuration(milliseconds).replace(/\.0s$| 0[smh]$/, zero => (zero === '.0s' ? 's' : ''))
}

/** A time of day. */
export function timeOf(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB')
}
