import { createHash } from 'node:crypto'
import { FairTurns, noTurn, type Party, type Turn } from './fair-turns.js'
import { Lane, type Counts, type Tenant, type Waiter } from './lane.js'

/** Tolerance for rounding, in turns. */
const ROUNDING = 1e-9
/** Maximum length of a name that processes compare. */
const MAX_NAME = 64
/** Less than the weight of any tenant. Tries have a smaller one. */
const MIN_WEIGHT = 1e-6

/** A tenant or group with waiters. */
export interface TenantInTurn {
  /** Short, and different for a tenant and a group. Empty for waiters without a tenant. */
  readonly name: string
  readonly weight: number
  /** Called when it also waits in other processes. @param parts number of processes. */
  share(parts: number): void
}

/** The tenants of a group, or the groups and the tenants without one. */
class Group implements Party, Counts {
  readonly turn = noTurn()
  readonly turns = new FairTurns<Lane | Group>()
  readonly lanes = new Map<string | undefined, Lane>()
  callers = 0
  permits = 0

  constructor(readonly name = '') {}

  get cost(): number {
    return this.turns.first?.cost ?? 0
  }
}

/**
 * The waiters of several tenants. The tenants take turns in proportion to their weights, by the number of permits; see
 * {@link FairTurns}. Only tenants with waiters take memory. Waiters without a tenant count as those of one more tenant,
 * with a weight of 1.
 */
export class Tenants {
  readonly #root = new Group()
  readonly #groups = new Map<string, Group>()

  /** @param others the waiters without a tenant. */
  constructor(others: Lane) {
    this.#root.lanes.set(undefined, others)
    this.#root.turns.changed(others)
  }

  get first(): Waiter | undefined {
    let party = this.#root.turns.first
    while (party instanceof Group) party = party.turns.first
    return party?.first
  }

  /** Returns the lane of a tenant, to which a waiter is about to be added. */
  laneOf(tenant: Tenant | undefined): Lane {
    const group = this.#groupOf(tenant) ?? new Group(tenant?.group)
    if (tenant?.group !== undefined) this.#groups.set(tenant.group, group)
    const lane = group.lanes.get(tenant?.name) ?? new Lane()
    group.lanes.set(tenant?.name, lane)
    lane.tenant = tenant
    lane.turn.weight = tenant?.weight ?? 1
    return lane
  }

  /** The tenants and groups, and their weights. @param max maximum number; the others are one without a name. */
  waiting(max: number): TenantInTurn[] {
    const all = this.#root.turns.all.filter(({ turn }) => turn.weight >= MIN_WEIGHT)
    const named = all.slice(0, max).map(party => ({
      name: nameOf(party),
      weight: party.turn.weight,
      share: (parts: number) => {
        party.turn.parts = parts
        if (party.turn.place !== -1) this.#root.turns.changed(party)
      },
    }))
    const rest = all.slice(max).reduce((sum, { turn }) => sum + turn.weight, 0)
    return rest > 0 ? [...named, { name: '', weight: rest, share: () => undefined }] : named
  }

  /** Number of waiters of a tenant, or of its group. */
  callersOf(tenant: Tenant): number {
    const group = this.#groupOf(tenant)
    return (group === this.#root ? group.lanes.get(tenant.name) : group)?.callers ?? 0
  }

  /** Called after a waiter was added to a lane or removed. */
  changed(lane: Lane, { n }: Waiter, sign: 1 | -1): void {
    const { tenant } = lane
    const group = this.#groupOf(tenant)!
    group.callers += sign
    group.permits += sign * n
    group.turns.changed(lane)
    if (lane.cost === 0 && tenant) group.lanes.delete(tenant.name)
    if (group === this.#root) return
    this.#root.turns.changed(group)
    if (group.cost === 0) this.#groups.delete(tenant!.group!)
  }

  /** Called when a waiter of a lane gets its permits, before it is removed. */
  took(lane: Lane, n: number): void {
    const group = this.#groupOf(lane.tenant)!
    group.turns.took(lane, n)
    if (group !== this.#root) this.#root.turns.took(group, n)
  }

  /**
   * Counts the waiters that have their turns before a new caller, if no others come. Of other tenants, counts only
   * those whose callers want one permit each, so the numbers may be too small.
   * @param isEstimate whether to count others by the average of their callers instead.
   */
  before(tenant: Tenant | undefined, priority: number, n: number, isEstimate: boolean): Counts {
    const group = this.#groupOf(tenant) ?? new Group()
    const lane = group.lanes.get(tenant?.name)
    const own = lane?.before(priority) ?? { callers: 0, permits: 0 }
    const inGroup = aheadIn(group, lane, tenant?.weight ?? 1, own, n, isEstimate)
    return group === this.#root ? inGroup : aheadIn(this.#root, group, 1, inGroup, n, isEstimate)
  }

  /** All waiters in the order of their turns, if no others come. The loop must not add or remove any. */
  *[Symbol.iterator](): Generator<Waiter, void, void> {
    const walk = new GroupWalk(this.#root)
    while (walk.cost > 0) yield walk.next()
  }

  #groupOf(tenant: Tenant | undefined): Group | undefined {
    return tenant?.group === undefined ? this.#root : this.#groups.get(tenant.group)
  }
}

/**
 * Adds to the waiters of a party that are ahead of its new caller those of the other parties of its group.
 * @param n number of permits that the new caller wants.
 */
function aheadIn(
  { turns }: Group,
  party: Lane | Group | undefined,
  weight: number,
  own: Counts,
  n: number,
  isEstimate: boolean,
): Counts {
  let { callers, permits } = own
  const turn = party && party.turn.place !== -1 ? party.turn : undefined
  const end = (turn?.begin ?? turns.time) + ((permits + n) * (turn?.parts ?? 1)) / weight
  for (const other of turns.all) {
    const size = isEstimate ? other.permits / other.callers : 1
    if (other === party || (!isEstimate && other.callers < other.permits)) continue
    const until = ((end - other.turn.begin) * other.turn.weight) / other.turn.parts / size
    let ahead = Math.max(Math.ceil(until - ROUNDING) - 1, 0)
    // Of turns with the same end, only the next one of each party has its place already.
    const isEqual = ahead === 0 && until > 1 - ROUNDING
    if (isEqual && (!turn || own.permits > 0 || other.turn.order < turn.order)) ahead = 1
    ahead = Math.min(ahead, other.callers)
    callers += ahead
    permits += ahead * size
  }
  return { callers, permits }
}

/** A short name, different for a tenant and a group. */
function nameOf(party: Lane | Group): string {
  if (party instanceof Group) return shortened(`group ${party.name}`)
  return party.tenant ? shortened(`tenant ${party.tenant.name}`) : ''
}

function shortened(name: string): string {
  return name.length <= MAX_NAME ? name : createHash('sha256').update(name).digest('base64url')
}

/** Goes through the waiters of a party in the order of their turns, and changes nothing. */
interface Walk extends Party {
  readonly party: Lane | Group
  next(): Waiter
}

class LaneWalk implements Walk {
  readonly turn: Turn
  #waiter: Waiter | undefined

  constructor(readonly party: Lane) {
    this.turn = { ...party.turn }
    this.#waiter = party.first
  }

  get cost(): number {
    return this.#waiter?.n ?? 0
  }

  next(): Waiter {
    const waiter = this.#waiter!
    this.#waiter = this.party.after(waiter)
    return waiter
  }
}

class GroupWalk implements Walk {
  readonly turn: Turn
  /** The parties that have had a turn, and those that can have the next one. */
  readonly #turns: FairTurns<Walk>
  readonly #begun = new Set<Walk>()

  constructor(readonly party: Group) {
    this.turn = { ...party.turn }
    this.#turns = party.turns.emptyCopy()
    this.#addAfter(undefined)
  }

  get cost(): number {
    return this.#turns.first?.cost ?? 0
  }

  next(): Waiter {
    const walk = this.#turns.first!
    if (!this.#begun.has(walk)) {
      this.#begun.add(walk)
      this.#addAfter(walk.party)
    }
    this.#turns.took(walk, walk.cost)
    const waiter = walk.next()
    this.#turns.changed(walk)
    return waiter
  }

  #addAfter(party: Lane | Group | undefined): void {
    for (const other of this.party.turns.after(party))
      this.#turns.addCopy(other instanceof Group ? new GroupWalk(other) : new LaneWalk(other))
  }
}
