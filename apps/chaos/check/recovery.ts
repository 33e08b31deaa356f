import type { Fault, History, LockRequest } from '../history.js'
import { SILENCES, type FaultKind } from '../plan.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'

/** The times that clients had to wait because of faults of one kind, in milliseconds. */
export interface Recovery {
  /** The kind of fault, and the measurement if there are several for this kind. */
  readonly kind: string
  readonly faults: number
  readonly median: number
  readonly worst: number
  readonly limit: number
}

/** The time that clients had to wait after a fault, and the requests that confirm it. */
interface Measured {
  readonly fault: Fault
  readonly what: string
  /** Time in milliseconds; Infinity if the harness gave up before the recovery. */
  readonly time: number
  /** Start of the measurement, unless the client asked later. */
  readonly since: number
  /** Whether a request is one whose grant shows the recovery. */
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

/** Returns the measurements of each fault: for the client itself, and for others that wait for a key that it held. */
function measured(faults: readonly Fault[]): Measured[] {
  return seenThrough(faults).flatMap((fault): Measured[] => {
    const { kind, client, at, until, key, recovery: time = Infinity, others = Infinity } = fault
    const isOwn = ({ who }: LockRequest): boolean =>
      client === undefined || who.split('.')[0] === String(client)
    const ofOthers = {
      fault,
      since: at,
      // After a kill, the next life of the client counts as another client.
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

/** Returns the faults that no interrupt cut short. */
export function seenThrough(faults: readonly Fault[]): Fault[] {
  return faults.filter(({ interrupted }) => !interrupted)
}

/**
 * Checks that locks were granted at all, and that everything continued in time after each fault (P9). A grant must
 * confirm each time that the harness measured: it came that long after the fault, or after a later request that waited
 * for the same.
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

/** Converts a time of a history from milliseconds to microseconds, as an integer. */
function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000)
}

/** Returns the maximum time of a measurement, in milliseconds; 0 if the history has no limit for it. */
function limitOf(limits: History['limits'], { fault: { kind }, what }: Measured): number {
  return limits[what] ?? limits[kind] ?? 0
}
