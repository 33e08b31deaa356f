import type { History, LockRequest } from '../history.js'
import { longTime } from '../stalls.js'

/** A period in which something may have kept a client from reaching the engine. */
export interface Trouble {
  /** The number of the client, from 1, or its life; absent if all clients were affected. */
  readonly client?: string
  readonly from: number
  readonly until: number
}

/** Whether the client of a request was in trouble between the request and its end. */
export function explains(
  { client, from, until }: Trouble,
  { who, asked, left = Infinity }: Pick<LockRequest, 'who' | 'asked' | 'left'>,
): boolean {
  const isIts = client === undefined || client === who || client === who.split('.')[0]
  return isIts && from <= left && until >= asked
}

/**
 * Returns the periods in which a fault, a process that did not run, or a slow engine may have kept clients from the
 * engine.
 */
export function troublesOf(history: History): Trouble[] {
  const { lease, requests, calls, faults, stalls } = history
  const known: Trouble[] = [
    ...faults
      // Leases do not use the wall clock.
      .filter(({ kind }) => kind !== 'shift clock')
      .map(({ client, at, until, recovery = Infinity }) => ({
        ...(client !== undefined && { client: String(client) }),
        from: at,
        until: until + recovery,
      })),
    ...stalls.map(({ who, from, until }) => ({ ...(who !== undefined && { client: who }), from, until })),
  ]
  const answers = [
    ...requests.map(({ who, leaving: asked, left }) => ({ who, asked, left })),
    ...calls.map(({ who, from: asked, until: left }) => ({ who, asked, left })),
  ]
  // A late answer that no trouble of its client explains: the engine was slow.
  const late = answers.flatMap(({ who, asked, left }): Trouble[] => {
    if (asked === undefined || left === undefined || left - asked < longTime(lease)) return []
    const isItsOwn = known.some(trouble => explains(trouble, { who, asked, left }))
    return isItsOwn ? [] : [{ from: asked, until: left }]
  })
  return [...known, ...late]
}
