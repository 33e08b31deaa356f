import { conflict, type Claim } from '../engine/claim.js'

/** What decides about who waits for whom: a holder of a key, or a waiter for it. */
export interface Claimant {
  readonly session: string
  readonly claim: Claim
}

/** A key in use. */
export interface Queue<P> {
  readonly key: string
  readonly holders: readonly P[]
  /** In the order in which they will get the lock. */
  readonly waiters: readonly P[]
}

/** A waiter, and a session that it waits for on a key. */
export interface Wait<P extends Claimant> {
  readonly key: string
  readonly waiter: P
  readonly blocker: P
  /** Whether the blocker holds the key. If not, it is the waiter directly ahead in the queue. */
  readonly holds: boolean
}

/** Returns all pairs of a waiter and what it waits for: the holders that block it, and the waiter directly ahead. */
export function waitsOf<P extends Claimant>(reports: readonly Queue<P>[]): Wait<P>[] {
  return reports.flatMap(({ key, holders, waiters }) => {
    const permits = holders.reduce((sum, holder) => sum + permitsOf(holder), 0)
    return waiters.flatMap((waiter, index): Wait<P>[] => {
      const before = waiters[index - 1]
      return [
        ...holders
          .filter(holder => blocks(holder, waiter, permits))
          .map(blocker => ({ key, waiter, blocker, holds: true })),
        ...(before ? [{ key, waiter, blocker: before, holds: false }] : []),
      ]
    })
  })
}

/** @param permits the number that all holders have together: one alone may leave enough. */
function blocks(holder: Claimant, { claim }: Claimant, permits: number): boolean {
  if (claim.mode !== 'permits' || holder.claim.mode !== 'permits') return conflict(holder.claim, claim)
  return permits + claim.permits > claim.max
}

function permitsOf({ claim }: Claimant): number {
  return claim.mode === 'permits' ? claim.permits : 0
}

/**
 * Leaves out that a waiter is behind another, if a holder blocks it as well: tasks of two sessions that queue for two
 * keys in different orders are not in a deadlock.
 */
export function decidingWaits<P extends Claimant>(waits: readonly Wait<P>[]): Wait<P>[] {
  const blocked = new Set(waits.filter(({ holds }) => holds).map(({ waiter }) => waiter))
  return waits.filter(({ holds, waiter }) => holds || !blocked.has(waiter))
}

/**
 * Finds cycles of sessions that wait for each other by {@link decidingWaits}. A session may have several tasks, so a
 * cycle *may* be a deadlock: a cycle that persists is one.
 */
export function cyclesOf(waits: readonly Wait<Claimant>[]): string[][] {
  const next = new Map<string, Set<string>>()
  for (const { waiter, blocker } of decidingWaits(waits)) {
    if (waiter.session === blocker.session) continue
    const others = next.get(waiter.session)
    if (others) others.add(blocker.session)
    else next.set(waiter.session, new Set([blocker.session]))
  }
  const cycles: string[][] = []
  const done = new Set<string>()
  for (const start of next.keys()) {
    const cycle = done.has(start) ? undefined : cycleFrom(start, next, done)
    if (cycle) cycles.push(cycle)
  }
  return cycles
}

/** Returns the first cycle on a path from one session, which is visited once. */
function cycleFrom(
  start: string,
  next: ReadonlyMap<string, ReadonlySet<string>>,
  done: Set<string>,
): string[] | undefined {
  const path = [start]
  const branches = [[...(next.get(start) ?? [])]]
  done.add(start)
  while (path.length > 0) {
    const session = branches.at(-1)!.pop()
    if (session === undefined) {
      path.pop()
      branches.pop()
      continue
    }
    const at = path.indexOf(session)
    if (at >= 0) return path.slice(at)
    if (done.has(session)) continue
    done.add(session)
    path.push(session)
    branches.push([...(next.get(session) ?? [])])
  }
  return undefined
}
