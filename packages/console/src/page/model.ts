import { cyclesOf, decidingWaits, waitsOf, type Wait } from 'signalbox/reports'
import type { KeyEvent, KeyView, LimiterView, Message, PartyView, Who } from '../messages.js'

/** The page keeps this many events, as the server does. */
const MAX_EVENTS = 2000

/** The state that the page knows. */
export interface Model {
  readonly engine: string
  readonly readOnly: boolean
  readonly hasDoctor: boolean
  /** Beginning of the timeline, by the clock of the server. */
  readonly since: number
  readonly keys: ReadonlyMap<string, KeyView>
  readonly limiters: readonly LimiterView[]
  /** Oldest first. */
  readonly events: readonly KeyEvent[]
}

/** Returns the model after a message; undefined if the state is not known yet. */
export function modelAfter(model: Model | undefined, message: Message): Model | undefined {
  switch (message.type) {
    case 'state': {
      const { engine, readOnly, hasDoctor, since, keys, limiters, events } = message
      return {
        engine,
        readOnly,
        hasDoctor,
        since,
        keys: new Map(keys.map(view => [view.key, view])),
        limiters,
        events,
      }
    }
    case 'change': {
      if (!model) return undefined
      const { keys: changed, gone, limiters = model.limiters, events } = message
      const keys = new Map(model.keys)
      for (const key of gone) keys.delete(key)
      for (const view of changed) keys.set(view.key, view)
      return {
        ...model,
        keys: changed.length + gone.length > 0 ? keys : model.keys,
        limiters,
        events: events.length > 0 ? [...model.events, ...events].slice(-MAX_EVENTS) : model.events,
      }
    }
    case 'fault':
      return model
  }
}

/** A key, and the number of waiters that its holders block: on this key, and on other keys that these waiters hold. */
export interface LockRow {
  readonly view: KeyView
  readonly inTheWayOf: number
}

/** A session, and the keys that it holds and awaits. */
export interface SessionRow {
  readonly who: Who
  readonly holds: readonly (readonly [key: string, party: PartyView])[]
  readonly awaits: readonly (readonly [key: string, party: PartyView])[]
}

/** Sessions that wait for each other. */
export interface Cycle {
  readonly sessions: readonly string[]
  /** Time at which the last of these waits began. */
  readonly since: number
}

/** Facts derived from the keys in use. */
export interface Overview {
  /** Keys that block the most waiters first. */
  readonly rows: readonly LockRow[]
  /** Omits the wait of a waiter for the one ahead of it, if a holder blocks it, too. */
  readonly waits: readonly Wait<PartyView>[]
  readonly cycles: readonly Cycle[]
  /** By session. */
  readonly sessions: ReadonlyMap<string, SessionRow>
  readonly holders: number
  readonly waiters: number
}

/** Derives the overview from the keys in use. */
export function overviewOf(keys: ReadonlyMap<string, KeyView>): Overview {
  const views = [...keys.values()]
  const sessions = sessionsOf(views)
  const behind = new BlockedWaiters(keys, sessions)
  const rows = views
    .map(view => ({ view, inTheWayOf: behind.count(view) }))
    .sort(
      (a, b) =>
        b.inTheWayOf - a.inTheWayOf ||
        b.view.waiters.length - a.view.waiters.length ||
        (a.view.key < b.view.key ? -1 : 1),
    )
  const waits = decidingWaits(waitsOf(views))
  return {
    rows,
    waits,
    cycles: cyclesOf(waits).map(cycle => ({ sessions: cycle, since: beginningOf(cycle, waits) })),
    sessions,
    holders: views.reduce((sum, { holders }) => sum + holders.length, 0),
    waiters: views.reduce((sum, { waiters }) => sum + waiters.length, 0),
  }
}

/**
 * Minimum age of a cycle that is shown, in milliseconds. The tasks of several sessions may wait for each other for
 * moments without a deadlock.
 */
const LASTING = 3000

/** Returns the cycles that may be deadlocks, by session. */
export function lastingCycles({ cycles }: Overview, now: number): (readonly string[])[] {
  return cycles.filter(({ since }) => now - since >= LASTING).map(({ sessions }) => sessions)
}

function beginningOf(cycle: readonly string[], waits: readonly Wait<PartyView>[]): number {
  const times = cycle.map((session, index) => {
    const next = cycle[(index + 1) % cycle.length]
    const links = waits.filter(
      ({ waiter, blocker }) => waiter.session === session && blocker.session === next,
    )
    return Math.min(...links.map(({ waiter }) => waiter.since))
  })
  return Math.max(...times)
}

/** Counts the waiters for a key, for the keys that these waiters hold, and so on. */
class BlockedWaiters {
  readonly #keys: ReadonlyMap<string, KeyView>
  readonly #sessions: ReadonlyMap<string, SessionRow>
  /** Results by waiting sessions: many keys have the same waiters. */
  readonly #known = new Map<string, { readonly keys: ReadonlySet<string>; readonly waiters: number }>()

  constructor(keys: ReadonlyMap<string, KeyView>, sessions: ReadonlyMap<string, SessionRow>) {
    this.#keys = keys
    this.#sessions = sessions
  }

  count({ key, waiters }: KeyView): number {
    const behind = this.#behind(new Set(waiters.map(({ session }) => session)))
    return behind.waiters + (behind.keys.has(key) ? 0 : waiters.length)
  }

  /**
   * Returns the keys that these sessions hold, the keys that the waiters for those keys hold, and so on. Also counts
   * all these waiters.
   */
  #behind(sessions: Set<string>): { readonly keys: ReadonlySet<string>; readonly waiters: number } {
    const id = [...sessions].sort().join(' ')
    const known = this.#known.get(id)
    if (known) return known
    const keys = new Set<string>()
    let waiters = 0
    // The loop also visits the sessions that it adds.
    for (const session of sessions)
      for (const [key] of this.#sessions.get(session)!.holds) {
        if (keys.has(key)) continue
        keys.add(key)
        const view = this.#keys.get(key)!
        waiters += view.waiters.length
        for (const waiter of view.waiters) sessions.add(waiter.session)
      }
    const found = { keys, waiters }
    this.#known.set(id, found)
    return found
  }
}

function sessionsOf(views: readonly KeyView[]): ReadonlyMap<string, SessionRow> {
  const rows = new Map<string, { who: Who; holds: [string, PartyView][]; awaits: [string, PartyView][] }>()
  const rowOf = (party: PartyView) => {
    const known = rows.get(party.session)
    if (known) return known
    const row = { who: party, holds: [], awaits: [] }
    rows.set(party.session, row)
    return row
  }
  for (const { key, holders, waiters } of views) {
    for (const holder of holders) rowOf(holder).holds.push([key, holder])
    for (const waiter of waiters) rowOf(waiter).awaits.push([key, waiter])
  }
  return rows
}
