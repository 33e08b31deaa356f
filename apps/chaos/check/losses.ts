import type { History, LockRequest } from '../history.js'
import type { Finding } from './finding.js'

/** Times that explain why a client could not renew what it held. */
interface Trouble {
  /** The client, counted from 1, or its life; absent when it concerned all. */
  readonly client?: string
  readonly from: number
  readonly until: number
}

/** An answer that takes so much of a lease is late: a renewal of that time may have come too late altogether. */
const SLOW = 1 / 4

/**
 * Whether each grant lasted until its holder gave it back (P3). A grant is lost, and a release stays without an answer, only
 * where something kept the client from renewing: a fault, a process that did not run, or an engine that did not answer.
 */
export function checkLosses(history: History): Finding[] {
  const lost = history.requests.filter(({ granted, end }) => granted !== undefined && isLoss(end))
  const troubles = troublesOf(history)
  return lost
    .filter(request => !troubles.some(trouble => explains(trouble, request)))
    .map(({ who, key, granted, end }) => ({
      promise: 'P3',
      message: `${who} ${end === 'lost' ? 'lost' : 'could not release'} ${key}, granted at ${granted!} ms, and nothing had kept it from the engine`,
    }))
}

function isLoss(end: LockRequest['end']): boolean {
  return end === 'lost' || end === 'unknown'
}

function explains(
  { client, from, until }: Trouble,
  { who, asked, left = Infinity }: Pick<LockRequest, 'who' | 'asked' | 'left'>,
): boolean {
  const isIts = client === undefined || client === who || client === who.split('.')[0]
  return isIts && from <= left && until >= asked
}

function troublesOf(history: History): Trouble[] {
  const { lease, limits, requests, calls, faults, stalls } = history
  const known: Trouble[] = [
    ...faults
      // Leases do not go by the clock that is set.
      .filter(({ kind }) => kind !== 'shift clock')
      .map(({ kind, client, at, until, recovery = Infinity }) => ({
        ...(client !== undefined && { client: String(client) }),
        from: at,
        until: until + Math.max(recovery, limits[kind] ?? 0),
      })),
    ...stalls.map(({ who, from, until }) => ({ ...(who !== undefined && { client: who }), from, until })),
  ]
  const answers = [
    ...requests.map(({ who, leaving: asked, left }) => ({ who, asked, left })),
    ...calls.map(({ who, from: asked, until: left }) => ({ who, asked, left })),
  ]
  // An engine that answers late, and not only to a client that was kept from it.
  const late = answers.flatMap(({ who, asked, left }): Trouble[] => {
    if (asked === undefined || left === undefined || left - asked < SLOW * lease) return []
    const isItsOwn = known.some(trouble => explains(trouble, { who, asked, left }))
    return isItsOwn ? [] : [{ from: asked, until: left }]
  })
  return [...known, ...late]
}
