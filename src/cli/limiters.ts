import type { Box, LimiterReport } from '../index.js'
import { shortDuration } from '../base/duration.js'
import { columns } from './columns.js'
import { printableJson } from '../base/printable.js'

/** Collects the limiters whose names start with `prefix`. @throws as `Box.limiters` */
export async function limitersOf(box: Box, prefix?: string): Promise<LimiterReport[]> {
  const all: LimiterReport[] = []
  for await (const report of box.limiters(prefix)) all.push(report)
  return all
}

const HEAD = ['LIMITER', 'KEY', 'LIMIT', 'USED', 'FREE', 'RESET', 'PAUSED', 'WAITING']
/** Columns of numbers and durations. */
const RIGHT_ALIGNED = [3, 4, 5, 6]

/** Renders limiters as a table, with a line for each limit; empty without limiters. */
export function limiterTable(reports: readonly LimiterReport[]): string {
  if (reports.length === 0) return ''
  const lines = reports.flatMap(({ name, key = '', limits, pausedFor, waiting }) => {
    const named = [name, key]
    const rest = [pausedFor > 0 ? shortDuration(pausedFor) : '', waiting.join(' ')]
    if (limits.length === 0) return [[...named, '', '', '', '', ...rest]]
    return limits.map(({ limit, per, window, timeZone, used, remaining, resetIn }) => {
      const kind = window === 'sliding' ? '' : ` ${window}${timeZone === '' ? '' : ` ${timeZone}`}`
      const counts = [String(used), String(remaining), resetIn > 0 ? shortDuration(resetIn) : '']
      return [...named, `${limit} per ${shortDuration(per)}${kind}`, ...counts, ...rest]
    })
  })
  return columns([HEAD, ...lines], RIGHT_ALIGNED)
}

/** Renders a limiter as a line of JSON. Durations are whole milliseconds. */
export function limiterLine({ name: limiter, key, limits, pausedFor, waiting }: LimiterReport): string {
  const whole = limits.map(limit => ({ ...limit, resetIn: Math.round(limit.resetIn) }))
  return `${printableJson({ limiter, key, limits: whole, pausedFor: Math.round(pausedFor), waiting })}\n`
}
