import type { TopLevelSpec } from 'vega-lite'
import { drawn } from '../apps/drawing.js'
import { growthPictures } from './growth-chart.js'
import type { Report, Row } from './report.js'

/** Minimum wait that the logarithmic scale shows, in milliseconds. */
const MIN_WAIT = 0.001

/**
 * Draws a report as SVG. Shows for each work the throughput of its subjects, how long callers waited, and the fairness,
 * if it was measured. A report about growth shows lines instead.
 */
export function chart({ rows, machine, date }: Report): Promise<string> {
  const specification = {
    background: 'white',
    title: {
      text: `${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}`,
      fontSize: 11,
      anchor: 'start',
    },
    ...(rows.every(({ growth }) => growth) ? growthPictures(rows) : workPictures(rows)),
  } as TopLevelSpec
  return drawn(specification)
}

function workPictures(rows: readonly Row[]): object {
  const works = [...new Set(rows.map(({ work }) => work))]
  return {
    vconcat: works.map(work => {
      const own = rows.filter(row => row.work === work)
      return { title: { text: work, anchor: 'start' }, hconcat: [done(own), ...waits(own), ...order(own)] }
    }),
    resolve: { scale: { x: 'independent', y: 'independent' } },
  }
}

/** Throughput: the median, and a line from the minimum to the maximum of all rounds. */
function done(rows: readonly Row[]): object {
  const values = rows.map(row => ({ subject: label(row), ...row.opsPerSecond }))
  const x = { type: 'quantitative', title: 'operations a second', axis: { format: '~s' } }
  const y = { ...subjects(rows), axis: { labelLimit: 400 } }
  return {
    ...panel(values),
    layer: [
      { mark: { type: 'bar', color: '#4c78a8' }, encoding: { x: { ...x, field: 'median' }, y } },
      { mark: 'rule', encoding: { x: { ...x, field: 'min' }, x2: { field: 'max' }, y } },
    ],
  }
}

/** Waits: a line from the median to the worst, with a tick at the 99th percentile. */
function waits(rows: readonly Row[]): readonly object[] {
  const values = rows.flatMap(({ subject, waitMs }) =>
    waitMs
      ? [
          {
            subject,
            p50: Math.max(waitMs.p50, MIN_WAIT),
            p99: Math.max(waitMs.p99, MIN_WAIT),
            worst: Math.max(waitMs.worst, MIN_WAIT),
          },
        ]
      : [],
  )
  if (values.length === 0) return []
  const y = bare(rows)
  const x = {
    type: 'quantitative',
    scale: { type: 'log', nice: true },
    title: 'wait in ms: p50, p99 and worst',
    axis: { format: '~g', tickCount: 5, grid: false },
  }
  return [
    {
      ...panel(values),
      layer: [
        {
          mark: { type: 'rule', color: '#888' },
          encoding: { x: { ...x, field: 'p50' }, x2: { field: 'worst' }, y },
        },
        { mark: { type: 'point', filled: true }, encoding: { x: { ...x, field: 'p50' }, y } },
        { mark: { type: 'tick', thickness: 2 }, encoding: { x: { ...x, field: 'p99' }, y } },
        {
          mark: { type: 'point', filled: true, color: '#d62728' },
          encoding: { x: { ...x, field: 'worst' }, y },
        },
      ],
    },
  ]
}

/** Fairness: the most later callers that overtook one caller, or the share of the process that did least. */
function order(rows: readonly Row[]): readonly object[] {
  const overtaken = rows.flatMap(({ subject, overtakenBy }) =>
    overtakenBy ? [{ subject, value: overtakenBy.worst }] : [],
  )
  // A chart of zeros shows nothing.
  if (overtaken.some(({ value }) => value > 0)) return [bars(rows, overtaken, 'overtaken by, worst', '~s')]
  const shares = rows.flatMap(({ subject, leastShare }) =>
    leastShare ? [{ subject, value: leastShare.median }] : [],
  )
  return shares.length > 0 ? [bars(rows, shares, 'share of the process that did least', '%')] : []
}

function bars(rows: readonly Row[], values: readonly object[], title: string, format: string): object {
  return {
    ...panel(values),
    mark: { type: 'bar', color: '#f58518' },
    encoding: { x: { field: 'value', type: 'quantitative', title, axis: { format } }, y: bare(rows) },
  }
}

/** Returns the label of a subject. A broken subject has no figures. */
function label({ subject, broken }: Row): string {
  return broken === undefined ? subject : `${subject} (broken)`
}

/** All subjects, including those without a value in this panel. */
function subjects(rows: readonly Row[]): object {
  return { field: 'subject', type: 'nominal', scale: { domain: rows.map(label) }, sort: null, title: null }
}

/** The same subjects without names, which the panel at the left already shows. */
function bare(rows: readonly Row[]): object {
  return { ...subjects(rows), axis: { labels: false, ticks: false } }
}

function panel(values: readonly object[]): object {
  return { data: { values }, width: 220, height: { step: 16 } }
}
