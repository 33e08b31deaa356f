import { figure, percent } from './figures.js'
import type { Ratio, Report, Row, TargetResult, WorkReport } from './report.js'
import type { Spread } from './statistics.js'
import type { Goal, Measure } from './work.js'

/** Rows of text under a heading. All columns except the first are aligned to the right. */
interface Table {
  readonly heading: readonly string[]
  readonly lines: readonly (readonly string[])[]
}

/** Formats the results of one work for a terminal. */
export function workText({ rows, ratios, targets }: WorkReport): string {
  const texts = [plain(rowTable(rows))]
  if (ratios.length > 0) texts.push(plain(ratioTable(ratios)))
  if (targets.length > 0) texts.push(plain(targetTable(targets)))
  return `${rows[0]!.work}\n\n${texts.join('\n')}\n`
}

/** Formats a report as Markdown for the documentation. */
export function markdown({ machine, date, command, rows, ratios, targets }: Report): string {
  const { cpu, cores, node, fileSystem, versions } = machine
  const compared = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const parts = [
    `\`${command}\` on ${date.slice(0, 10)}: ${cpu}, ${cores} cores, ${fileSystem}, Node ${node}; ` +
      `${compared.join(', ')}.`,
  ]
  for (const work of new Set(rows.map(row => row.work))) {
    const own = <T extends { readonly work: string }>(all: readonly T[]): readonly T[] =>
      all.filter(one => one.work === work)
    parts.push(`**${work.slice(work.indexOf(': ') + 2)}**`, marked(rowTable(own(rows))))
    if (own(ratios).length > 0) parts.push(marked(ratioTable(own(ratios))))
    if (own(targets).length > 0) parts.push(marked(targetTable(own(targets))))
  }
  return `${parts.join('\n\n')}\n`
}

function rowTable(rows: readonly Row[]): Table {
  const waits = rows.some(({ waitMs }) => waitMs)
  const shares = rows.some(({ leastShare }) => leastShare)
  const order = rows.some(({ overtakenBy }) => overtakenBy)
  const sockets = rows.some(({ connections }) => connections)
  return {
    heading: [
      'subject',
      'a second',
      'least to most',
      ...(waits ? ['waits p50 ms', 'p99', 'worst'] : []),
      ...(shares ? ['least share'] : []),
      ...(order ? ['overtaken p99', 'worst'] : []),
      ...(sockets ? ['connections'] : []),
    ],
    lines: rows.map(({ subject, opsPerSecond, waitMs, leastShare, overtakenBy, connections, broken }) => {
      if (!opsPerSecond) return [`${subject}: broken, ${broken ?? ''}`]
      return [
        subject,
        figure(opsPerSecond.median),
        range(opsPerSecond),
        ...(waits ? (waitMs ? [waitMs.p50, waitMs.p99, waitMs.worst].map(figure) : ['', '', '']) : []),
        ...(shares ? [leastShare ? percent(leastShare.median) : ''] : []),
        ...(order ? (overtakenBy ? [overtakenBy.p99, overtakenBy.worst].map(figure) : ['', '']) : []),
        ...(sockets ? [connections ? String(connections) : ''] : []),
      ]
    }),
  }
}

function ratioTable(ratios: readonly Ratio[]): Table {
  return {
    heading: ['compared round by round', 'times', 'least to most', 'goal', ''],
    lines: ratios.map(({ of, to, measure, goal, reached, ...values }) => [
      `${of} to ${to}, ${NAMES[measure]}`,
      figure(values.median),
      range(values),
      goal ? goalText(goal, figure) : '',
      reached === undefined ? '' : verdict(reached),
    ]),
  }
}

function targetTable(targets: readonly TargetResult[]): Table {
  return {
    heading: ['goal for', 'median', 'least to most', 'goal', ''],
    lines: targets.map(({ of, measure, goal, reached, ...values }) => {
      const text = measure === 'least share' ? percent : figure
      return [
        `${of}, ${NAMES[measure]}`,
        text(values.median),
        `${text(values.min)} to ${text(values.max)}`,
        goalText(goal, text),
        verdict(reached),
      ]
    }),
  }
}

const NAMES: Readonly<Record<Measure, string>> = {
  opsPerSecond: 'operations a second',
  'p99 wait': 'p99 wait in ms',
  'worst wait': 'worst wait',
  'worst wait to median': 'worst wait to its own median',
  'least share': 'share of the process that did least',
}

function range({ min, max }: Spread): string {
  return `${figure(min)} to ${figure(max)}`
}

function goalText(goal: Goal, text: (value: number) => string): string {
  return 'atLeast' in goal ? `at least ${text(goal.atLeast)}` : `at most ${text(goal.atMost)}`
}

function verdict(reached: boolean): string {
  return reached ? 'reached' : 'missed'
}

function plain({ heading, lines }: Table): string {
  const widths = widthsOf([heading, ...lines.filter(line => line.length === heading.length)])
  const text = (cells: readonly string[]): string =>
    `  ${cells.map((cell, index) => padded(cell, widths[index]!, index)).join('  ')}`.trimEnd()
  return `${[heading, ...lines].map(text).join('\n')}\n`
}

/** Formats a table as Markdown with aligned columns. */
export function marked({ heading, lines }: Table): string {
  const widths = widthsOf([heading, ...lines]).map(width => Math.max(width, 3))
  const text = (cells: readonly string[]): string =>
    `| ${widths.map((width, index) => padded(cells[index] ?? '', width, index)).join(' | ')} |`
  const rule = widths.map((width, index) => (index === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [text(heading), `| ${rule.join(' | ')} |`, ...lines.map(text)].join('\n')
}

function padded(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}

function widthsOf(lines: readonly (readonly string[])[]): number[] {
  const columns = Math.max(...lines.map(line => line.length))
  return Array.from({ length: columns }, (_, column) =>
    Math.max(...lines.map(line => (line[column] ?? '').length)),
  )
}
