import type { Inspect, RequestReport } from '../../engine/contract.js'
import type { DeadSets } from './dead-sets.js'
import type { Decisions } from './decisions.js'
import type { Pointer } from './open-entry.js'
import type { Scan } from './scan.js'
import type { Sessions } from './sessions.js'
import type { WaitingRoom } from './waiting-room.js'

/** Maximum number of entries that are changed at the same time. */
const AT_ONCE = 64

/** A request of a key, with its ID. */
interface Reported {
  readonly id: string
  readonly report: RequestReport
}

/** Reports requests to operators, and removes those of a session. */
export class Reports {
  readonly #decisions: Decisions
  readonly #room: WaitingRoom
  readonly #dead: DeadSets
  readonly #scan: Pick<Scan, 'inUse'>
  readonly #sessions: Pick<Sessions, 'of'>
  readonly #lookUpSigns: (key: string) => Promise<boolean>

  /** @param lookUpSigns looks up whether boxes whose requests wait for a key live. Returns whether that was unknown. */
  constructor(
    decisions: Decisions,
    room: WaitingRoom,
    dead: DeadSets,
    scan: Pick<Scan, 'inUse'>,
    sessions: Pick<Sessions, 'of'>,
    lookUpSigns: (key: string) => Promise<boolean>,
  ) {
    this.#lookUpSigns = lookUpSigns
    this.#decisions = decisions
    this.#room = room
    this.#dead = dead
    this.#scan = scan
    this.#sessions = sessions
  }

  async inspect({ prefix, exact = false }: Inspect): Promise<RequestReport[]> {
    const keys = exact ? [prefix] : await this.#scan.inUse(prefix)
    const settled = await Promise.allSettled(keys.map(key => this.#ofKey(key)))
    // An entry that another program has written fails only its own key.
    if (exact && settled[0]?.status === 'rejected') throw settled[0].reason as Error
    const found = settled.flatMap(each => (each.status === 'fulfilled' ? each.value : []))
    const known = new Set(found.map(({ id, report }) => `${id} ${report.key}`))
    const waiting = (await this.#room.reports()).filter(
      ({ id, report }) =>
        !known.has(`${id} ${report.key}`) && (exact ? report.key === prefix : report.key.startsWith(prefix)),
    )
    const all = [...found, ...waiting].map(({ report }) => report)
    const infos = await this.#sessions.of([...new Set(all.map(({ session }) => session))])
    const order = new Map([...new Set(all.map(({ key }) => key))].sort().map((key, at) => [key, at]))
    return all
      .map(report => {
        const info = infos.get(report.session)
        return info
          ? { ...report, host: info.host, pid: info.pid, label: report.label ?? info.label }
          : report
      })
      .sort((one, other) => order.get(one.key)! - order.get(other.key)!)
  }

  /**
   * Removes all requests of sessions from the entries. Sets leave their other keys as their homes say, because they may
   * have committed. Returns the number of requests.
   * @param areDead whether no box of these sessions does anything any more.
   */
  async revoke(sessions: readonly string[], areDead = false): Promise<number> {
    const ids = new Set<string>()
    for (const session of sessions) for (const id of await this.#room.revoke(session)) ids.add(id)
    const keys = await this.#scan.inUse('')
    const withSets: string[] = []
    await inParts(keys, async key => {
      const removed = await this.#revokeAt(key, sessions)
      for (const id of removed.ids) ids.add(id)
      if (removed.hasSets) withSets.push(key)
    })
    await inParts(withSets, key => this.#dead.free(key, areDead ? new Set(sessions) : undefined))
    return ids.size
  }

  #revokeAt(
    key: string,
    sessions: readonly string[],
  ): Promise<{ readonly ids: readonly string[]; readonly hasSets: boolean }> {
    return this.#decisions.at(key, (state, machine, now) => {
      const all = sessions.flatMap(session => state.requestsOf(session))
      const own = all.filter(({ id }) => !state.isPointer(id))
      if (own.length === all.length)
        for (const session of sessions) machine.decide({ type: 'revoke', session }, now)
      else for (const request of own) machine.decide({ type: 'cancel', request }, now)
      return { ids: all.map(({ id }) => id), hasSets: own.length < all.length }
    })
  }

  async #ofKey(key: string): Promise<Reported[]> {
    const first = await this.#foundAt(key)
    const { found, pointers } = (await this.#lookUpSigns(key)) ? await this.#foundAt(key) : first
    if (pointers.length === 0) return found
    const homes = new Map(
      await Promise.all(
        pointers.map(async ({ id, home }) => {
          const reports = await this.#decisions.at(home, (state, _machine, now) => {
            const part = state.part(id)
            return part && part.number > 0
              ? { number: part.number, expiresIn: part.expires - now, phase: 'held' as const }
              : undefined
          })
          return [id, reports] as const
        }),
      ),
    )
    return found.map(({ id, report }) => ({ id, report: { ...report, ...homes.get(id) } }))
  }

  #foundAt(key: string): Promise<{ readonly found: Reported[]; readonly pointers: Pointer[] }> {
    return this.#decisions.at(key, (state, machine, now) => {
      const reports = machine.decide({ type: 'inspect', prefix: key, exact: true }, now)
      const live = [...(state.queue(key) ?? [])].filter(({ request }) => !state.hasExpired(request, now))
      return {
        pointers: state.pointers(),
        found: reports.map((report, at) => {
          const { id } = live[at]!.request
          // A key is kept for a set before the set has all of its keys.
          const isStanding = report.phase === 'held' && report.number === 0
          return { id, report: { ...report, ...(isStanding && { phase: 'waiting' as const }) } }
        }),
      }
    })
  }
}

/** Does work on keys, not on all of them at the same time. A key whose work fails is left out. */
async function inParts(keys: readonly string[], work: (key: string) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < keys.length; at += AT_ONCE)
    await Promise.allSettled(keys.slice(at, at + AT_ONCE).map(work))
}
