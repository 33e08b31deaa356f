import type { LockReport, Party } from 'signalbox'
import type { KeyEvent, KeyView, PartyView, Who } from './messages.js'

/** An event without its number. */
export type Happened = Omit<KeyEvent, 'number'>

/** Returns how an operator ended a grant with the console; undefined if no operator did. */
export type ByHand = (holder: PartyView) => 'released by hand' | 'revoked by hand' | undefined

/**
 * Returns the view of a key for the page. Unchanged parts are the same objects as in the previous view, so that only
 * changes are sent. Ages grow with each look, so the view has times since 1970 instead.
 * @param at time of the look, in milliseconds since 1970.
 * @param isFirst whether this is the first look. Then the view does not show when the holders got the key.
 * @param slack maximum difference between two looks in the time of the same request, in milliseconds.
 */
export function keyView(
  before: KeyView | undefined,
  { key, holders, waiters }: LockReport,
  at: number,
  isFirst: boolean,
  slack: number,
): KeyView {
  const held = new Requests(slack, before?.holders)
  const waited = new Requests(slack, before?.waiters)
  const next = {
    key,
    holders: holders.map(party => holderView(held.take(party, at), party, at, isFirst, slack)),
    waiters: waiters.map(party => waiterView(waited.take(party, at), party, at, slack)),
  }
  return before && sameList(before.holders, next.holders) && sameList(before.waiters, next.waiters)
    ? before
    : next
}

/** Returns the events of a key between two looks. */
export function happenedTo(
  before: KeyView | undefined,
  after: KeyView | undefined,
  at: number,
  byHand: ByHand,
  slack: number,
): Happened[] {
  const key = (after ?? before)!.key
  const held = new Requests(slack, before?.holders)
  const waited = new Requests(slack, before?.waiters)
  const began = (after?.holders ?? []).filter(holder => !held.takeSame(holder))
  for (const waiter of after?.waiters ?? []) waited.takeSame(waiter)
  const started = began.map(holder => ({ holder, waiter: waited.takeSame(holder) }))
  const events: Happened[] = []
  let from: PartyView | undefined
  for (const holder of held.left()) {
    const kind = byHand(holder) ?? (holder.until! <= at ? 'expired' : 'released')
    // A release and the grant that follows it are one event.
    if (kind === 'released' && from === undefined && started.length > 0) from = holder
    else events.push({ at, key, kind, who: who(holder), ...heldBy(holder, at) })
  }
  for (const { holder, waiter } of started) {
    const times = waiter && { waited: Math.max(0, at - waiter.since) }
    const passed = from && { from: who(from), ...heldBy(from, at) }
    events.push({
      at,
      key,
      kind: passed ? 'handed over' : 'granted',
      who: who(holder),
      ...passed,
      ...times,
    })
    from = undefined
  }
  for (const waiter of waited.left())
    events.push({ at, key, kind: 'left', who: who(waiter), waited: Math.max(0, at - waiter.since) })
  return events
}

/** The requests of a look, by session. The next look finds them again. */
class Requests {
  readonly #bySession = new Map<string, PartyView[]>()
  readonly #slack: number

  constructor(slack: number, parties: readonly PartyView[] = []) {
    this.#slack = slack
    for (const party of parties) {
      const others = this.#bySession.get(party.session)
      if (others) others.push(party)
      else this.#bySession.set(party.session, [party])
    }
  }

  /** Finds the request of a party, and removes it. */
  take({ session, claim, age, token }: Party, at: number): PartyView | undefined {
    return this.#take(session, {
      claim,
      since: at - age,
      token: token === undefined ? undefined : String(token),
    })
  }

  /** Finds the same request, which may hold the lock by now, and removes it. */
  takeSame({ session, claim, since, token }: PartyView): PartyView | undefined {
    return this.#take(session, { claim, since, token })
  }

  /** Returns the requests that were not taken. */
  left(): PartyView[] {
    return [...this.#bySession.values()].flat()
  }

  #take(
    session: string,
    { claim, since, token }: { claim: PartyView['claim']; since: number; token: string | undefined },
  ): PartyView | undefined {
    const parties = this.#bySession.get(session) ?? []
    const isNear = (party: PartyView): boolean => Math.abs(party.since - since) <= this.#slack
    let index = token === undefined ? -1 : parties.findIndex(party => party.token === token)
    if (index < 0) index = parties.findIndex(party => isNear(party) && sameClaim(party.claim, claim))
    // A downgrade changes the claim.
    if (index < 0 && token !== undefined)
      index = parties.findIndex(party => party.token !== undefined && isNear(party))
    return index < 0 ? undefined : parties.splice(index, 1)[0]
  }
}

function requestView({ session, host, pid, label, claim, age }: Party, at: number): PartyView {
  return { session, host, pid, label, claim, since: Math.round(at - age) }
}

function waiterView(before: PartyView | undefined, party: Party, at: number, slack: number): PartyView {
  const next = requestView(party, at)
  // A clock that runs faster than the other one moves the time a little with each look.
  return before && Math.abs(before.since - next.since) <= slack / 2 ? before : next
}

function holderView(
  before: PartyView | undefined,
  party: Party,
  at: number,
  isFirst: boolean,
  slack: number,
): PartyView {
  const token = String(party.token)
  const until = Math.round(at + party.expiresIn)
  if (
    before?.token === token &&
    Math.abs(before.until! - until) <= slack &&
    sameClaim(before.claim, party.claim)
  )
    return before
  const since = before?.since ?? Math.round(at - party.age)
  const heldSince = before ? before.heldSince : isFirst ? undefined : Math.round(at)
  return {
    ...requestView(party, at),
    since,
    token,
    until,
    ...(heldSince !== undefined && { heldSince }),
  }
}

function who({ session, host, pid, label }: PartyView): Who {
  return { session, host, pid, label }
}

function heldBy({ heldSince }: PartyView, at: number): { held?: number } {
  return heldSince === undefined ? {} : { held: Math.max(0, at - heldSince) }
}

function sameClaim(a: PartyView['claim'], b: PartyView['claim']): boolean {
  if (a.mode === 'permits' && b.mode === 'permits') return a.permits === b.permits && a.max === b.max
  return a.mode === b.mode
}

function sameList(a: readonly PartyView[], b: readonly PartyView[]): boolean {
  return a.length === b.length && a.every((party, index) => party === b[index])
}
