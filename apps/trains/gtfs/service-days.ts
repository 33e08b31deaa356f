import type { Fault } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { kindOf } from '../messages/field.js'
import type { Feed } from './feed.js'
import { readTable, type Row } from './table.js'

/** Columns of calendar.txt, in the order of `Date.getUTCDay`. */
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const

/** Returns the weekday of a date such as `20260131`, 0 for Sunday; undefined if the date is invalid. */
export function weekdayOf(date: string): number | undefined {
  const match = /^(\d{4})(\d{2})(\d{2})$/.exec(date)
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const parsed = new Date(Date.UTC(year, month - 1, day))
  return parsed.getUTCMonth() === month - 1 && parsed.getUTCDate() === day ? parsed.getUTCDay() : undefined
}

/**
 * Returns for each service of the feed whether it runs on a date. Reads calendar.txt and the exceptions in
 * calendar_dates.txt. Either of these files may be missing.
 * @throws InputError if both are missing, the date is invalid, or no service runs on it.
 */
export async function servicesOn(date: string, feed: Feed): Promise<ReadonlyMap<string, boolean>> {
  const weekday = weekdayOf(date)
  if (weekday === undefined) throw new InputError(`invalid date ${date}: it must be a date such as 20260131`)
  const hasCalendar = feed.has('calendar.txt')
  const hasExceptions = feed.has('calendar_dates.txt')
  if (!hasCalendar && !hasExceptions) {
    throw new InputError(
      `${feed.path} has neither calendar.txt nor calendar_dates.txt, so the trips on ${date} are unknown`,
    )
  }
  const services = new Map<string, boolean>()
  if (hasCalendar) await addRegular(services, date, WEEKDAYS[weekday]!, feed)
  if (hasExceptions) await applyExceptions(services, date, feed)
  if (![...services.values()].includes(true))
    throw new InputError(`no service of ${feed.path} runs on ${date}`)
  return services
}

async function addRegular(
  services: Map<string, boolean>,
  date: string,
  weekday: string,
  feed: Feed,
): Promise<void> {
  const columns = ['service_id', ...WEEKDAYS, 'start_date', 'end_date']
  for await (const row of readTable(feed, 'calendar.txt', columns)) {
    const fault =
      row.idFault('service_id') ??
      dateFault(row, 'start_date') ??
      dateFault(row, 'end_date') ??
      flagFault(row, weekday, ['0', '1'])
    if (fault) {
      row.reject(fault)
      continue
    }
    // Dates in this format can be compared as text.
    const isWithin = row.value('start_date') <= date && date <= row.value('end_date')
    const service = row.value('service_id')
    services.set(service, services.get(service) === true || (isWithin && row.value(weekday) === '1'))
  }
}

async function applyExceptions(services: Map<string, boolean>, date: string, feed: Feed): Promise<void> {
  for await (const row of readTable(feed, 'calendar_dates.txt', ['service_id', 'date', 'exception_type'])) {
    const fault =
      row.idFault('service_id') ?? dateFault(row, 'date') ?? flagFault(row, 'exception_type', ['1', '2'])
    if (fault) {
      row.reject(fault)
      continue
    }
    const service = row.value('service_id')
    const runs = row.value('date') === date ? row.value('exception_type') === '1' : services.get(service)
    services.set(service, runs ?? false)
  }
}

function dateFault(row: Row, column: string): Fault | undefined {
  const date = row.value(column)
  if (weekdayOf(date) !== undefined) return undefined
  return { kind: column, reason: `${column} must be a date such as 20260131, got ${kindOf(date)}` }
}

function flagFault(row: Row, column: string, allowed: readonly string[]): Fault | undefined {
  const flag = row.value(column)
  if (allowed.includes(flag)) return undefined
  return { kind: column, reason: `${column} must be ${allowed.join(' or ')}, got ${kindOf(flag)}` }
}
