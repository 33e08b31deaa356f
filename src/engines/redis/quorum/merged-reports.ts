import type { RequestReport } from '../../../engine/contract.js'
import type { IdentifiedReport } from '../operator.js'
import { leaseHere } from './candidate.js'
import { majorityOf } from './tally.js'

/** What the servers tell of one request and one of its keys. */
interface MergedReport extends RequestReport {
  readonly id: string
  /** What each server says, by its index. */
  readonly byServer: ReadonlyMap<number, IdentifiedReport>
}

/**
 * The requests that a majority of the servers know, each key's in order. A server that did not answer may know them all.
 * @param reports of the servers by their index; undefined where there was no answer
 */
export function mergedReports(reports: readonly (readonly IdentifiedReport[] | undefined)[]): MergedReport[] {
  const silent = reports.filter(report => report === undefined).length
  const least = Math.max(1, majorityOf(reports.length) - silent)
  const byRequest = new Map<string, Map<number, IdentifiedReport>>()
  for (const [server, all] of reports.entries()) {
    for (const report of all ?? []) {
      const name = `${report.id} ${report.key}`
      const known = byRequest.get(name)
      if (known) known.set(server, report)
      else byRequest.set(name, new Map([[server, report]]))
    }
  }
  const known = [...byRequest.values()].filter(({ size }) => size >= least)
  return known.map(byServer => merged(byServer, least)).sort(inOrder)
}

function merged(byServer: ReadonlyMap<number, IdentifiedReport>, least: number): MergedReport {
  const all = [...byServer.values()]
  const held = all.filter(({ phase }) => phase === 'held')
  const isHeld = held.length >= least
  const others = all.filter(({ phase }) => phase !== 'held')
  const phase = isHeld ? 'held' : others.some(one => one.phase === 'reserved') ? 'reserved' : 'waiting'
  // As long as a majority keeps it.
  const left = (isHeld ? held : all).map(({ expiresIn }) => expiresIn).sort((one, other) => other - one)
  const { order: _, ...first } = all[0]!
  return {
    ...first,
    phase,
    number: isHeld ? commonest(held.map(({ number }) => number)) : 0,
    age: Math.max(...all.map(({ age }) => age)),
    expiresIn: leaseHere(left[least - 1]!),
    byServer,
  }
}

/** A grant has the number that a majority voted with; the others may have voted with greater ones. */
function commonest(numbers: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const number of numbers) counts.set(number, (counts.get(number) ?? 0) + 1)
  const [[most]] = [...counts].sort(([one, many], [other, more]) => more - many || one - other) as [
    [number, number],
  ]
  return most
}

/** By key; holders before those who wait, and these by their place in the queues. */
function inOrder(one: MergedReport, other: MergedReport): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1
  return placeOf(one) < placeOf(other) ? -1 : 1
}

function placeOf({ phase, byServer, id }: MergedReport): string {
  if (phase === 'held') return ''
  const orders = [...byServer.values()].filter(one => one.phase !== 'held').map(({ order }) => order)
  return `${orders[0] ?? ''}${id}`
}
