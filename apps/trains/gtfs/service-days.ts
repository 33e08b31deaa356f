import type { Fault, FindingsListener } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { kindOf, name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
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
 * Returns for each service of the feed whether it runs on a date, from calendar.txt and the exceptions in
 * calendar_dates.txt; either may be missing.
 * @throws InputError if both are missing, the date is invalid, or nothing runs on it.
 */
export async function servicesOn(
  date: string,
  files: FeedFiles,
  findings: FindingsListener,
): Promise<ReadonlyMap<string, boolean>> {
  const weekday = weekdayOf(date)
  if (weekday === undefined) throw new InputError(`invalid date ${date}: it must be a date such as 20260131`)
  const calendar = files.has('calendar.txt')
  const exceptions = files.has('calendar_dates.txt')
  if (!calendar && !exceptions) {
    throw new InputError(
      `${files.path} has neither calendar.txt nor calendar_dates.txt, so the trips on ${date} are unknown`,
    )
  }
  const services = new Map<string, boolean>()
  if (calendar) await addRegular(services, date, WEEKDAYS[weekday]!, files, findings)
  if (exceptions) await applyExceptions(services, date, files, findings)
  if (![...services.values()].includes(true))
    throw new InputError(`no service of ${files.path} runs on ${date}`)
  return services
}

async function addRegular(
  services: Map<string, boolean>,
  date: string,
  weekday: string,
  files: FeedFiles,
  findings: FindingsListener,
): Promise<void> {
  const file = 'calendar.txt'
  for await (const row of readTable(
    files,
    file,
    ['service_id', ...WEEKDAYS, 'start_date', 'end_date'],
    findings,
  )) {
    const refused =
      serviceRefused(row) ??
      dateRefused(row, 'start_date') ??
      dateRefused(row, 'end_date') ??
      flagRefused(row, weekday, ['0', '1'])
    if (refused) {
      findings.rejected({ file, line: row.line, ...refused })
      continue
    }
    // Dates in this format sort as text.
    const within = row.value('start_date') <= date && date <= row.value('end_date')
    const service = row.value('service_id')
    services.set(service, services.get(service) === true || (within && row.value(weekday) === '1'))
  }
}

async function applyExceptions(
  services: Map<string, boolean>,
  date: string,
  files: FeedFiles,
  findings: FindingsListener,
): Promise<void> {
  const file = 'calendar_dates.txt'
  for await (const row of readTable(files, file, ['service_id', 'date', 'exception_type'], findings)) {
    const refused =
      serviceRefused(row) ?? dateRefused(row, 'date') ?? flagRefused(row, 'exception_type', ['1', '2'])
    if (refused) findings.rejected({ file, line: row.line, ...refused })
    else {
      const service = row.value('service_id')
      const runs = row.value('date') === date ? row.value('exception_type') === '1' : services.get(service)
      services.set(service, runs ?? false)
    }
  }
}

/** Returns why the service of a line is invalid. */
export function serviceRefused(row: Row): Fault | undefined {
  const checked = name(row.value('service_id'))
  return 'refused' in checked ? { kind: 'service_id', reason: `service_id ${checked.refused}` } : undefined
}

function dateRefused(row: Row, column: string): Fault | undefined {
  const date = row.value(column)
  if (weekdayOf(date) !== undefined) return undefined
  return { kind: column, reason: `${column} must be a date such as 20260131, got ${kindOf(date)}` }
}

function flagRefused(row: Row, column: string, allowed: readonly string[]): Fault | undefined {
  const flag = row.value(column)
  if (allowed.includes(flag)) return undefined
  return { kind: column, reason: `${column} must be ${allowed.join(' or ')}, got ${kindOf(flag)}` }
}
