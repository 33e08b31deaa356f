import type { History, LockRequest } from '../history.js'
import { longTime } from '../stalls.js'

/** A time in which a client could be kept from sending to the engine. */
export interface Trouble {
  /** The client, counted from 1, or its life; absent when it concerned all. */
  readonly client?: string
  readonly from: number
  readonly until: number
}

/** Whether the client of a request was in trouble between its asking and its end. */
export function explains(
  { client, from, until }: Trouble,
  { who, asked, left = Infinity }: Pick<LockRequest, 'who' | 'asked' | 'left'>,
): boolean {
  const isIts = client === undefined || client === who || client === who.split('.')[0]
  return isIts && from <= left && until >= asked
}

/** What may have kept clients from the engine: a fault, a process that did not run, an engine that did not answer. */
export function troublesOf(history: History): Trouble[] {
  const { lease, requests, calls, faults, stalls } = history
  const known: Trouble[] = [
    ...faults
      // Leases do not use the clock that is set.
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
  // An engine that answers late, and not only to a client that was kept from it.
  const late = answers.flatMap(({ who, asked, left }): Trouble[] => {
    if (asked === undefined || left === undefined || left - asked < longTime(lease)) return []
    const isItsOwn = known.some(trouble => explains(trouble, { who, asked, left }))
    return isItsOwn ? [] : [{ from: asked, until: left }]
  })
  return [...known, ...late]
}
