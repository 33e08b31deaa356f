import { columns } from '../../../src/cli/columns.js'
import type { FindingsSummary, FoundKind } from '../input/findings.js'
import { busiest } from './busiest.js'
import { differenceText } from './comparison.js'
import type { Report } from './report.js'

const MAX_ROWS = 10

const numbers = new Intl.NumberFormat('en-US')
const durations = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })

export function textReport(report: Report, names: ReadonlyMap<string, string>, deadLetters: string): string {
  return [
    ...table(report, names),
    '',
    ...totals(report, deadLetters),
    ...kills(report),
    '',
    ...verdict(report),
    '',
    ...findingsText(report),
  ].join('\n')
}

function table(report: Report, names: ReadonlyMap<string, string>): readonly string[] {
  const rows = busiest(new Map(Object.entries(report.locations)), MAX_ROWS)
  const head = ['location', 'name', 'created', 'arrived', 'departed', 'deleted', 'all']
  const cells = rows.map(({ id, total, created, arrived, departed, deleted }) => [
    id,
    names.get(id) ?? '',
    ...[created, arrived, departed, deleted, total].map(count => numbers.format(count)),
  ])
  const all = names.size > 0 ? [head, ...cells] : [head, ...cells].map(row => row.filter((_, at) => at !== 1))
  const texts = names.size > 0 ? 2 : 1
  const figures = [...all[0]!.keys()].slice(texts)
  return [
    `The busiest of ${Object.keys(report.locations).length} locations:`,
    columns(all, figures).trimEnd(),
  ]
}

function totals(report: Report, deadLetters: string): readonly string[] {
  const count = (value: number) => numbers.format(value)
  const lines = [
    `${count(report.messages)} messages by ${report.processes} processes on ${report.engine}: ` +
      `${count(report.created)} created, ${count(report.moved)} moved, ${count(report.deleted)} deleted, ` +
      `${count(report.ignored)} ignored, ${count(report.rejected)} rejected, ${count(report.deadLettered)} dead-lettered`,
    `${count(Math.round(report.perSecond))} messages/s in ${durations.format(report.seconds)} s; ` +
      `waited for locks: p50 ${wait(report.lockWaitMs.p50)}, p99 ${wait(report.lockWaitMs.p99)}`,
    memory(report),
  ]
  if (report.resumedAfter > 0) lines.push(`${count(report.resumedAfter)} messages were done before --resume`)
  if (report.deadLettered > 0) lines.push(`dead letters: ${deadLetters}`)
  return lines
}

function memory({ peakMemory, perWorker }: Report): string {
  const workers = perWorker.flatMap(worker => worker.peakMemory ?? [])
  const megabytes = (bytes: number) => `${numbers.format(Math.round(bytes / 1e6))} MB`
  const worker = workers.length === 0 ? '' : `, worker ${megabytes(Math.max(...workers))}`
  return `peak memory: supervisor ${megabytes(peakMemory)}${worker}`
}

function kills(report: Report): readonly string[] {
  if (report.kills.length === 0) return []
  const sum = (pick: (kill: Report['kills'][number]) => number) =>
    numbers.format(report.kills.reduce((total, kill) => total + pick(kill), 0))
  return [
    `${report.kills.length} kills with ${sum(kill => kill.inFlight)} messages in flight; ` +
      `${sum(kill => kill.redelivered)} were delivered again, ${sum(kill => kill.alreadyApplied)} of them already committed`,
  ]
}

function verdict(report: Report): readonly string[] {
  const part = report.interrupted ? ' so far; --resume continues' : ''
  if (report.matchesSerial) return [`Every location agrees with the serial result${part}.`]
  return [
    'THE RESULT IS WRONG. The first locations that differ from the serial result:',
    ...report.differences.map(difference => `  ${differenceText(difference)}`),
  ]
}

/** Returns the faults of the input as lines of text. Rejected lines come last. */
export function findingsText(found: FindingsSummary): readonly string[] {
  const { repaired, repairs, rejected, rejections } = found
  return [
    ...(repaired > 0
      ? [`Repaired input faults: ${numbers.format(repaired)}`, ...repairs.map(kindText), '']
      : []),
    ...(rejected > 0
      ? [
          `REJECTED INPUT LINES (their content is lost): ${numbers.format(rejected)}`,
          ...rejections.map(kindText),
          '',
        ]
      : []),
  ]
}

function kindText({ file, lines, first }: FoundKind): string {
  const others = lines > 1 ? `, and ${numbers.format(lines - 1)} more` : ''
  return `  ${file}, line ${first.line}${others}: ${first.reason}`
}

function wait(duration: number | null): string {
  return duration === null ? 'none' : `${durations.format(duration)} ms`
}
