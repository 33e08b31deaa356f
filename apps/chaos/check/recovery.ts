import type { Fault, History } from '../history.js'
import { SILENCES, type FaultKind } from '../plan.js'
import type { Finding } from './finding.js'
import { grouped } from './grouped.js'

/** How long clients had to wait for faults of one kind: milliseconds. */
export interface Recovery {
  /** The fault, and what was measured where that is not the same for all of its kind. */
  readonly kind: string
  readonly faults: number
  readonly median: number
  readonly worst: number
  readonly limit: number
}

/** How long clients had to wait after a fault, and what that shows. */
interface Measured {
  readonly fault: Fault
  readonly what: string
  /** Milliseconds; Infinity: longer than the harness looked. */
  readonly time: number
}

export function recoveries({ faults, limits }: History): Recovery[] {
  return [...grouped(measured(faults), ({ what }) => what)].map(([kind, all]) => {
    const times = all.map(({ time }) => time).sort((one, other) => one - other)
    return {
      kind,
      faults: all.length,
      median: (times[(times.length - 1) >> 1]! + times[times.length >> 1]!) / 2,
      worst: times.at(-1)!,
      limit: limitOf(limits, all[0]!),
    }
  })
}

/** What was seen after the faults: whether the client goes on, and others with what it held. */
function measured(faults: readonly Fault[]): Measured[] {
  return seenThrough(faults).flatMap((fault): Measured[] => {
    const { kind, key, recovery: time = Infinity, others = Infinity } = fault
    if ((kind === 'kill' || kind === 'stop') && key === undefined)
      return [{ fault, what: `${kind}, held nothing`, time }]
    const own = { fault, what: kind, time }
    const isSilence = SILENCES.has(kind as FaultKind) && key !== undefined
    return isSilence ? [own, { fault, what: `${kind}, others`, time: others }] : [own]
  })
}

/** The faults that were not broken off by an interrupt. */
export function seenThrough(faults: readonly Fault[]): Fault[] {
  return faults.filter(({ interrupted }) => !interrupted)
}

/** Whether locks were granted at all, and everything went on in time after each fault (P9). */
export function checkRecovery({ requests, faults, limits }: History): Finding[] {
  if (!requests.some(({ granted }) => granted !== undefined))
    return [{ promise: 'P9', message: 'no lock was ever granted' }]
  return measured(faults)
    .filter(one => one.time > limitOf(limits, one))
    .map(one => ({
      promise: 'P9',
      message: `${one.time === Infinity ? 'nothing went on' : `it took ${Math.round(one.time)} ms`} after the fault "${one.what}" at ${Math.round(one.fault.at)} ms, where ${limitOf(limits, one)} ms are allowed`,
    }))
}

/** How long what was measured may take: milliseconds. */
function limitOf(limits: History['limits'], { fault: { kind }, what }: Measured): number {
  return limits[what] ?? limits[kind]!
}
