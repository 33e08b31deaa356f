import type { Fault, FindingsListener } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { kindOf, name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { readTable, type Row } from './table.js'

/** Columns of calendar.txt, in the order in which `Date` counts the days of a week. */
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const

/** The weekday of a date like `20260131`, 0 for Sunday; undefined when there is no such date. */
export function weekdayOf(date: string): number | undefined {
  const match = /^(\d{4})(\d{2})(\d{2})$/.exec(date)
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const parsed = new Date(Date.UTC(year, month - 1, day))
  return parsed.getUTCMonth() === month - 1 && parsed.getUTCDate() === day ? parsed.getUTCDay() : undefined
}

/**
 * Whether each service of the feed runs on a date, by calendar.txt and the exceptions of calendar_dates.txt; either may
 * be missing.
 * @throws InputError when both are, when there is no such date, or when nothing runs on it.
 */
export async function servicesOn(
  date: string,
  files: FeedFiles,
  findings: FindingsListener,
): Promise<ReadonlyMap<string, boolean>> {
  const weekday = weekdayOf(date)
  if (weekday === undefined) throw new InputError(`there is no date ${date}: it must be like 20260131`)
  const calendar = files.has('calendar.txt')
  const exceptions = files.has('calendar_dates.txt')
  if (!calendar && !exceptions) {
    throw new InputError(
      `${files.path} has neither calendar.txt nor calendar_dates.txt, so it doesn't say what runs on ${date}`,
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
    // Dates of this form compare like numbers.
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

/** Why the service of a line can't be one. */
export function serviceRefused(row: Row): Fault | undefined {
  const checked = name(row.value('service_id'))
  return 'refused' in checked ? { kind: 'service_id', reason: `service_id ${checked.refused}` } : undefined
}

function dateRefused(row: Row, column: string): Fault | undefined {
  const date = row.value(column)
  if (weekdayOf(date) !== undefined) return undefined
  return { kind: column, reason: `${column} must be a date like 20260131, got ${kindOf(date)}` }
}

function flagRefused(row: Row, column: string, allowed: readonly string[]): Fault | undefined {
  const flag = row.value(column)
  if (allowed.includes(flag)) return undefined
  return { kind: column, reason: `${column} must be ${allowed.join(' or ')}, got ${kindOf(flag)}` }
}
