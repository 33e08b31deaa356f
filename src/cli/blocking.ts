import type { LockReport, Party } from '../index.js'
import { conflict } from '../engine/index.js'

/** A waiter and a session that it waits for, because of a key. */
export interface Wait {
  readonly key: string
  readonly waiter: Party
  readonly blocker: Party
  /** Whether the blocker holds the key, or stands next before the waiter in its queue. */
  readonly holds: boolean
}

/** All pairs of a waiter and a session it waits for: the holders that block it, and the waiter next before it. */
export function waitsOf(reports: readonly LockReport[]): Wait[] {
  return reports.flatMap(({ key, holders, waiters }) =>
    waiters.flatMap((waiter, place): Wait[] => {
      const before = waiters[place - 1]
      return [
        ...holders
          .filter(holder => keepsOut(holder, waiter, holders))
          .map(blocker => ({ key, waiter, blocker, holds: true })),
        ...(before ? [{ key, waiter, blocker: before, holds: false }] : []),
      ]
    }),
  )
}

function keepsOut(holder: Party, waiter: Party, holders: readonly Party[]): boolean {
  const { claim } = waiter
  if (claim.mode !== 'permits' || holder.claim.mode !== 'permits') return conflict(holder.claim, claim)
  // Of several holders none may be too many alone.
  const held = holders.reduce((sum, other) => sum + permitsOf(other), 0)
  return held + claim.permits > claim.max
}

function permitsOf({ claim }: Party): number {
  return claim.mode === 'permits' ? claim.permits : 0
}

/**
 * Circles of sessions that wait for each other. A session may have several tasks, so a circle *may* be a deadlock: one
 * that stays is.
 */
export function circlesOf(waits: readonly Wait[]): string[][] {
  const next = new Map<string, Set<string>>()
  for (const { waiter, blocker } of waits) {
    if (waiter.session === blocker.session) continue
    const others = next.get(waiter.session)
    if (others) others.add(blocker.session)
    else next.set(waiter.session, new Set([blocker.session]))
  }
  const circles: string[][] = []
  const done = new Set<string>()
  for (const start of next.keys()) {
    const circle = done.has(start) ? undefined : circleFrom(start, next, done)
    if (circle) circles.push(circle)
  }
  return circles
}

/** The first circle that is met on the way from one session, which is looked at once. */
function circleFrom(
  start: string,
  next: ReadonlyMap<string, ReadonlySet<string>>,
  done: Set<string>,
): string[] | undefined {
  const path = [start]
  const ways = [[...(next.get(start) ?? [])]]
  done.add(start)
  while (path.length > 0) {
    const session = ways.at(-1)!.pop()
    if (session === undefined) {
      path.pop()
      ways.pop()
      continue
    }
    const at = path.indexOf(session)
    if (at >= 0) return path.slice(at)
    if (done.has(session)) continue
    done.add(session)
    path.push(session)
    ways.push([...(next.get(session) ?? [])])
  }
  return undefined
}
