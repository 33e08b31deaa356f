import type { Fault, History, LockRequest } from '../history.js'
import { SILENCES, type FaultKind } from '../plan.js'
import type { Finding } from './finding.js'
import { groupedBy } from '../../../src/base/grouped.js'

/** How long clients had to wait for faults of one kind, in milliseconds. */
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
  /** From when on it was measured, unless the client asked later. */
  readonly since: number
  /** Whether it is a request of a client that had to wait, for what it had to wait for. */
  readonly isIt: (request: LockRequest) => boolean
}

export function recoveries({ faults, limits }: History): Recovery[] {
  return [...groupedBy(measured(faults), ({ what }) => what)].map(([kind, all]) => {
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

/** What was seen after the faults: whether the client continues, and others with what it held. */
function measured(faults: readonly Fault[]): Measured[] {
  return seenThrough(faults).flatMap((fault): Measured[] => {
    const { kind, client, at, until, key, recovery: time = Infinity, others = Infinity } = fault
    const isOwn = ({ who }: LockRequest): boolean =>
      client === undefined || who.split('.')[0] === String(client)
    const ofOthers = {
      fault,
      since: at,
      // After a kill the next life of the client is another one.
      isIt: (request: LockRequest) =>
        (kind === 'kill' || !isOwn(request)) && (key === undefined || request.key === key),
    }
    if (kind === 'kill' || kind === 'stop')
      return [{ ...ofOthers, what: key === undefined ? `${kind}, held nothing` : kind, time }]
    const own = {
      fault,
      what: kind,
      time,
      since: until,
      isIt: (request: LockRequest) => isOwn(request) && (kind !== 'shift clock' || request.asked >= until),
    }
    const isSilence = SILENCES.has(kind as FaultKind) && key !== undefined
    return isSilence ? [own, { ...ofOthers, what: `${kind}, others`, time: others }] : [own]
  })
}

/** The faults that were not cut short by an interrupt. */
export function seenThrough(faults: readonly Fault[]): Fault[] {
  return faults.filter(({ interrupted }) => !interrupted)
}

/**
 * Whether locks were granted at all, and everything continued in time after each fault (P9). What the harness measured
 * must be what a request waited: from the fault, or from when it or another one for the same was made, to its grant.
 */
export function checkRecovery({ requests, faults, limits }: History): Finding[] {
  if (!requests.some(({ granted }) => granted !== undefined))
    return [{ promise: 'P9', message: 'no lock was ever granted' }]
  const byAsked = groupedBy(requests, ({ asked }) => microseconds(asked))
  return measured(faults).flatMap(one => {
    const { time, what, fault } = one
    const limit = limitOf(limits, one)
    const name = `the fault "${what}" at ${Math.round(fault.at)} ms`
    const findings: string[] = []
    if (time > limit) {
      const took = time === Infinity ? 'no recovery' : `recovery took ${Math.round(time)} ms`
      findings.push(`${took} after ${name}, where ${limit} ms are allowed`)
    }
    if (time !== Infinity && !isShown(one, requests, byAsked))
      findings.push(`no grant shows that recovery took ${Math.round(time)} ms after ${name}`)
    return findings.map(message => ({ promise: 'P9' as const, message }))
  })
}

function isShown(
  { time, since, isIt }: Measured,
  requests: readonly LockRequest[],
  byAsked: ReadonlyMap<number, readonly LockRequest[]>,
): boolean {
  return requests.some(request => {
    const { granted } = request
    if (granted === undefined || granted < since || !isIt(request)) return false
    const from = microseconds(granted) - microseconds(time)
    return (
      from === microseconds(since) || (from > microseconds(since) && (byAsked.get(from)?.some(isIt) ?? false))
    )
  })
}

/** A time of a history, which is one to the microsecond, as a whole number. */
function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000)
}

/** How long what was measured may take: milliseconds; nothing is allowed where the history names no limit. */
function limitOf(limits: History['limits'], { fault: { kind }, what }: Measured): number {
  return limits[what] ?? limits[kind] ?? 0
}
