import { columns } from '../../src/cli/columns.js'
import type { Verdict } from './check/check.js'
import type { UpdateFigures } from './check/updates.js'
import type { Fault } from './history.js'
import type { Report } from './report.js'

/** Maximum number of findings shown for each promise. */
const MAX_FINDINGS = 5
/** Indexes of the columns with figures. */
const FIGURES = [1, 2, 3, 4]

/** Formats a report for a terminal. */
export function textReport(report: Report): string {
  const { engine, locks, processes, lease, session, seed, faults, seconds } = report
  const silent = session === undefined ? '' : `, session ${session} ms`
  const heading = `${locks} on ${engine}: ${processes} processes, lease ${lease} ms${silent}, seed ${seed}, ${faults} faults in ${seconds} s`
  return `${heading}\n\n${textVerdict(report)}`
}

/** Formats the result of checking a history, for a terminal. */
export function textVerdict(verdict: Verdict): string {
  const { findings, undecided } = verdict
  const parts = [
    columns(
      [
        ['fault', 'times', 'recovered after ms', 'worst', 'allowed'],
        ...verdict.recoveries.map(({ kind, faults: times, median, worst, limit }) => [
          kind,
          number(times),
          number(median),
          number(worst),
          number(limit),
        ]),
      ],
      FIGURES,
    ),
    columns([['increments', 'done', 'refused', 'lost', ''], ...updates(verdict)], FIGURES),
    sentence(verdict),
  ]
  if (undecided > 0) parts.push(`The order of the calls on ${undecided} keys could not be determined.\n`)
  const shown = firstOfEach(findings).map(({ promise, message }) => `${promise} ${message}\n`)
  const more = findings.length > shown.length ? `and ${findings.length - shown.length} more\n` : ''
  const end = findings.length === 0 ? 'Every promise was kept.\n' : `Broken:\n${shown.join('')}${more}`
  return `${parts.join('\n')}\n${end}`
}

function firstOfEach(findings: Verdict['findings']): Verdict['findings'] {
  const counts = new Map<string, number>()
  return findings.filter(({ promise }) => {
    const count = (counts.get(promise) ?? 0) + 1
    counts.set(promise, count)
    return count <= MAX_FINDINGS
  })
}

/** Formats a fault in one line: its time, its client, and the recovery time. */
export function faultLine({ kind, client, at, key, recovery, interrupted }: Fault): string {
  const whom = client === undefined ? '' : ` of client ${client}`
  const held = key === undefined ? '' : `, which held ${key}`
  const after = recovery === undefined ? 'no recovery' : `recovered after ${number(recovery)} ms`
  return `${(at / 1000).toFixed(1)} s: ${kind}${whom}${held}: ${interrupted ? 'interrupted' : after}\n`
}

/** Formats the ratio of lost to accepted increments, in percent. */
function lossRate({ accepted, lost }: UpdateFigures): string {
  return `${((100 * lost) / Math.max(accepted, 1)).toFixed(2)} %`
}

function updates({ fenced, unfenced }: Verdict): string[][] {
  const line = (name: string, figures: UpdateFigures): string[] => [
    name,
    number(figures.accepted),
    number(figures.refused),
    number(figures.lost),
    lossRate(figures),
  ]
  const free = line('without fencing', unfenced)
  return fenced.accepted + fenced.refused > 0 ? [line('with fencing tokens', fenced), free] : [free]
}

function sentence({ grants, orders, transfers, storeCalls, fenced }: Verdict): string {
  const granted = `${number(grants)} grants, ${number(orders)} pairs of requests compared`
  if (fenced.accepted + fenced.refused === 0) return `${granted}.\n`
  const { applied, repeated, refused, unknown } = transfers
  return (
    `${granted}; ${number(storeCalls)} single reads and writes; ${number(applied)} transfers done, ` +
    `${number(repeated)} duplicate deliveries ignored, ${number(refused)} refused, ${number(unknown)} unknown.\n`
  )
}

function number(value: number): string {
  return value === Infinity ? 'never' : Math.round(value).toLocaleString('en')
}
