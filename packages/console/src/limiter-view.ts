import type { LimiterReport } from 'signalbox'
import type { LimiterView } from './messages.js'

/** Maximum difference between two readings of the same time, in milliseconds, because replies are delayed. */
const SLACK = 750

/** Returns the views of the limiters for the page; the same array as before if nothing has changed. */
export function limiterViews(
  before: readonly LimiterView[],
  reports: readonly LimiterReport[],
  at: number,
): readonly LimiterView[] {
  const next = reports.map(({ name, key, limits, pausedFor, waiting }): LimiterView => ({
    name,
    key,
    limits: limits.map(({ limit, per, window, timeZone, unit, used, remaining, resetIn }) => ({
      limit,
      per,
      window,
      timeZone,
      unit,
      used,
      remaining,
      readyAt: used > 0 ? Math.round(at + resetIn) : undefined,
    })),
    pausedUntil: pausedFor > 0 ? Math.round(at + pausedFor) : undefined,
    waiting,
  }))
  const isSame = next.length === before.length && next.every((view, index) => same(view, before[index]!))
  return isSame ? before : next
}

function same(a: LimiterView, b: LimiterView): boolean {
  return (
    a.name === b.name &&
    a.key === b.key &&
    near(a.pausedUntil, b.pausedUntil) &&
    a.waiting.join(' ') === b.waiting.join(' ') &&
    a.limits.length === b.limits.length &&
    a.limits.every((limit, index) => {
      const { readyAt, ...rest } = limit
      const { readyAt: readyBefore, ...restBefore } = b.limits[index]!
      return near(readyAt, readyBefore) && JSON.stringify(rest) === JSON.stringify(restBefore)
    })
  )
}

function near(a: number | undefined, b: number | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Math.abs(a - b) <= SLACK
}
