import { figure } from './figures.js'
import type { Report } from './report.js'
import { marked } from './tables.js'

/** Works about locks that all engines have in common, and the column of each. */
const columns: readonly (readonly [heading: string, work: RegExp])[] = [
  ['one task', /^\w+: (lock and unlock one key|acquire and release, no waiter)$/],
  ['64 tasks, 64 keys', /^\w+: 64 tasks, each with its own key$/],
  ['16 tasks, one key', /^\w+: (one key wanted by 16 tasks|acquire and release, 64 tasks want it)$/],
  ['4 processes, one key', /^\w+: one key wanted by 4 processes with 4 tasks each$/],
]

/** The parts with these works, and their names in the page. */
const engines: Readonly<Record<string, string>> = {
  memory: 'memory, 64 tasks instead of 16',
  file: 'file',
  redis: 'Redis',
  postgres: 'PostgreSQL',
  zookeeper: 'ZooKeeper',
  hazelcast: 'Hazelcast',
}

/** Works about the cost of neighbours, with the subject that has the most of them, and the column of each. */
const neighbourWorks: readonly (readonly [heading: string, work: RegExp])[] = [
  ['20,000 keys held, to 10', /next to others that are held, signalbox, 20000 /],
  ['1,000 requests wait for another key, to 1', /next to requests that wait for another, 1000 /],
  ['1,000 wait for the same key, to 10', /turns of the waiters .*, 1000 /],
  ['100,000 values in the store, to 100', /write a value next to others, 100000 /],
]

/** Returns the tables of the page about benchmarks, by their names in the page. */
export function summaries(reports: Readonly<Record<string, Report>>): Record<string, string> {
  return {
    speed: locks(reports, speed),
    ratios: locks(reports, (report, work) => ratios(report, work, 'opsPerSecond')),
    waits: locks(reports, (report, work) => ratios(report, work, 'worst wait')),
    boxes: boxes(growth(reports)),
    neighbours: neighbours(growth(reports)),
    trains: messages(reports['trains']!),
  }
}

function locks(
  reports: Readonly<Record<string, Report>>,
  cell: (report: Report, work: string) => string,
): string {
  const lines = Object.entries(engines).map(([part, name]) => {
    const report = reports[part]!
    const works = columns.map(([, pattern]) => report.rows.find(({ work }) => pattern.test(work))?.work)
    return [name, ...works.map(work => (work === undefined ? '' : cell(report, work)))]
  })
  const filled = columns.map((_, index) => lines.some(line => line[index + 1] !== ''))
  const kept = (cells: readonly string[]): string[] =>
    cells.filter((_, index) => index === 0 || filled[index - 1])
  const heading = ['engine', ...columns.map(([name]) => name)]
  const measured = lines.filter(line => line.slice(1).some(Boolean))
  return marked({ heading: kept(heading), lines: measured.map(kept) })
}

function speed(report: Report, work: string): string {
  const row = report.rows.find(row => row.work === work && row.subject === 'signalbox')
  return figure(row!.opsPerSecond!.median)
}

/** Formats the range of the ratios to the other subjects. */
function ratios(report: Report, work: string, measure: string): string {
  const found = report.ratios
    .filter(ratio => ratio.work === work && ratio.measure === measure && ratio.of === 'signalbox')
    .map(({ median }) => median)
  if (found.length === 0) return ''
  const [least, greatest] = [Math.min(...found), Math.max(...found)].map(figure)
  return least === greatest ? least! : `${least} to ${greatest}`
}

/** Merges the reports about growth. */
function growth(reports: Readonly<Record<string, Report>>): Pick<Report, 'rows' | 'ratios'> {
  const all = Object.entries(reports).flatMap(([name, report]) =>
    name.startsWith('growth-') ? [report] : [],
  )
  return { rows: all.flatMap(({ rows }) => rows), ratios: all.flatMap(({ ratios }) => ratios) }
}

/** Table of the speed of each library by the number of boxes, with one caller each. */
function boxes({ rows }: Pick<Report, 'rows'>): string {
  const points = rows.filter(({ growth }) => growth?.unit === 'boxes')
  const sizes = [...new Set(points.map(({ growth }) => growth!.size))]
  const lines = new Map<string, string[]>()
  for (const { growth, opsPerSecond } of points) {
    const name = `${growth!.picture.replace(': boxes, ', ', ')}: ${growth!.line}`
    const line = lines.get(name) ?? [name]
    line[1 + sizes.indexOf(growth!.size)] = opsPerSecond ? figure(opsPerSecond.median) : 'fails'
    lines.set(name, line)
  }
  return marked({ heading: ['boxes', ...sizes.map(String)], lines: [...lines.values()] })
}

/** Table of the speed of Signalbox next to the most neighbours, divided by that next to the fewest. */
function neighbours({ rows, ratios }: Pick<Report, 'rows' | 'ratios'>): string {
  const engines = [...new Set(rows.map(({ work }) => engineOf(work)))]
  const lines = engines.map(engine => [
    engine,
    ...neighbourWorks.map(([, pattern]) => {
      const found = ratios.find(({ work, of }) => engineOf(work) === engine && pattern.test(`${work}, ${of}`))
      return found ? figure(found.median) : 'fails'
    }),
  ])
  return marked({ heading: ['engine', ...neighbourWorks.map(([heading]) => heading)], lines })
}

/** Returns the engine of a work about growth, named `PART: ENGINE: WORK`. */
function engineOf(work: string): string {
  return work.split(': ')[1]!
}

function messages({ rows }: Report): string {
  const lines = rows.map(({ work, subject, opsPerSecond, waitMs }) => [
    `${/ on (.*)$/.exec(work)![1]!}, ${subject}`,
    figure(opsPerSecond!.median),
    figure(waitMs!.p99),
  ])
  return marked({ heading: ['engine', 'messages a second', 'p99 wait in ms'], lines })
}
