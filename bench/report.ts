import type { Machine } from './machine.js'
import type { Samples } from './rounds.js'
import { percentile, spread, summary, type Spread, type WaitSummary } from './statistics.js'
import { concatenated } from './wait-log.js'
import {
  idOf,
  type Comparison,
  type Goal,
  type GrowthPoint,
  type Measure,
  type Sample,
  type Work,
} from './work.js'

/** The results of one subject. */
export interface Row {
  readonly work: string
  readonly subject: string
  readonly rounds: number
  /** Absent if the subject is broken. */
  readonly opsPerSecond?: Spread
  /** Waits over all rounds. Absent if nothing waits. */
  readonly waitMs?: WaitSummary
  /** Share of the process, or of the box, that did least, if there are several. */
  readonly leastShare?: Spread
  /** Number of later callers that overtook a caller, over all rounds. */
  readonly overtakenBy?: { readonly p50: number; readonly p99: number; readonly worst: number }
  /** Maximum number of open TCP sockets of all processes. Absent if none was open. */
  readonly connections?: number
  readonly growth?: GrowthPoint
  readonly broken?: string
}

/** A comparison of two subjects, round by round. */
export interface Ratio extends Spread {
  readonly work: string
  readonly measure: Measure
  readonly of: string
  readonly to: string
  readonly goal?: Goal
  readonly reached?: boolean
}

/** A value compared with its goal. */
export interface TargetResult extends Spread {
  readonly work: string
  readonly measure: Measure
  readonly of: string
  readonly goal: Goal
  readonly reached: boolean
}

/** The results of a run of the bench. */
export interface Report {
  readonly command: string
  readonly date: string
  readonly machine: Machine
  readonly rows: readonly Row[]
  readonly ratios: readonly Ratio[]
  readonly targets: readonly TargetResult[]
}

/** The results of one work. */
export type WorkReport = Pick<Report, 'rows' | 'ratios' | 'targets'>

/** Summarizes the rounds of one work. A broken subject has neither figures nor ratios. */
export function workReport(work: Work, measured: readonly Samples[]): WorkReport {
  const id = idOf(work)
  const sound = new Map(
    measured.filter(one => brokenBy(one) === undefined).map(one => [one.subject, one.samples]),
  )
  const ratios = work.comparisons.flatMap((comparison): Ratio[] => {
    const of = sound.get(comparison.of)
    const to = sound.get(comparison.to)
    return of && to ? [ratio(id, comparison, of, to)] : []
  })
  const targets = (work.targets ?? []).flatMap(({ measure, of, goal }): TargetResult[] => {
    const samples = sound.get(of)
    if (!samples) return []
    const values = spread(samples.map(sample => valueOf(measure, sample)))
    return [{ work: id, measure, of, ...values, goal, reached: reaches(values.median, goal) }]
  })
  return { rows: measured.map(one => row(id, one)), ratios, targets }
}

function row(work: string, { subject, growth, samples }: Samples): Row {
  const rounds = samples.length
  const broken = brokenBy({ subject, samples })
  const point = growth && { growth }
  if (broken !== undefined) return { work, subject, rounds, ...point, broken }
  const waitMs = summary(concatenated(samples.map(({ waits }) => waits)))
  const orders = samples.flatMap(({ overtaken }) => (overtaken ? [overtaken] : []))
  const overtakenBy = summary(concatenated(orders))
  const shared = samples.every(({ perPart }) => perPart)
  const connections = Math.max(...samples.map(sample => sample.connections ?? 0))
  return {
    work,
    subject,
    rounds,
    opsPerSecond: spread(samples.map(sample => valueOf('opsPerSecond', sample))),
    ...(waitMs && { waitMs }),
    ...(shared && { leastShare: spread(samples.map(sample => valueOf('least share', sample))) }),
    ...(overtakenBy && { overtakenBy }),
    ...(connections > 0 && { connections }),
    ...point,
  }
}

function ratio(work: string, comparison: Comparison, of: readonly Sample[], to: readonly Sample[]): Ratio {
  const { measure, goal } = comparison
  const values = spread(of.map((sample, round) => valueOf(measure, sample) / valueOf(measure, to[round]!)))
  const result = { work, measure, of: comparison.of, to: comparison.to, ...values }
  return goal ? { ...result, goal, reached: reaches(values.median, goal) } : result
}

function valueOf(measure: Measure, { operations, milliseconds, waits, perPart }: Sample): number {
  switch (measure) {
    case 'opsPerSecond':
      return (operations / milliseconds) * 1000
    case 'p99 wait':
      return percentile(waits.slice().sort(), 0.99)
    case 'worst wait':
      return worstOf(waits)
    case 'worst wait to median':
      return worstOf(waits) / percentile(waits.slice().sort(), 0.5)
    case 'least share':
      return Math.min(...(perPart ?? [operations])) / Math.max(operations, 1)
  }
}

function worstOf(waits: Float64Array): number {
  return waits.reduce((worst, wait) => Math.max(worst, wait), 0)
}

function reaches(value: number, goal: Goal): boolean {
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost
}

function brokenBy({ samples }: Samples): string | undefined {
  return samples.find(({ broken }) => broken !== undefined)?.broken
}
