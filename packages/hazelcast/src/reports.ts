import { DamagedValueError } from 'signalbox'
import type { Inspect, RequestReport } from 'signalbox/engine'
import type { DeadSets } from './dead-sets.js'
import type { Decisions } from './decisions.js'
import type { Pointer } from './open-entry.js'
import type { Scan } from './scan.js'
import type { Sessions } from './sessions.js'
import type { WaitingRoom } from './waiting-room.js'

/** Maximum number of entries that are read or changed at the same time. */
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
  readonly #scan: Pick<Scan, 'inUse' | 'usedBy'>
  readonly #sessions: Pick<Sessions, 'isDead' | 'lookUpNow' | 'of'>
  readonly #lookUpSigns: (key: string) => Promise<boolean>

  /**
   * @param lookUpSigns looks up whether the boxes of requests that wait for a key live. Returns whether that was
   * unknown.
   */
  constructor(
    decisions: Decisions,
    room: WaitingRoom,
    dead: DeadSets,
    scan: Pick<Scan, 'inUse' | 'usedBy'>,
    sessions: Pick<Sessions, 'isDead' | 'lookUpNow' | 'of'>,
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
    const keys = exact ? [] : await this.#scan.inUse(prefix)
    const found = exact
      ? await this.#ofKey(prefix)
      : (await inParts(keys, key => this.#ofKey(key))).flatMap(each => each)
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

  /** Removes all requests of a session from the entries. Returns their number. */
  async revoke(session: string): Promise<number> {
    const ids = new Set(await this.#room.revoke(session))
    const keys = await this.#scan.inUse('')
    const withSets: string[] = []
    await inParts(keys, async key => {
      const { own, sets } = await this.#decisions.at(key, (state, machine, now) => {
        const removed = { own: state.requestsOf(session), sets: state.pointers() }
        machine.decide({ type: 'revoke', session }, now)
        return removed
      })
      const ofSets = sets.filter(each => each.session === session)
      for (const { id } of [...own, ...ofSets]) ids.add(id)
      if (ofSets.length > 0) withSets.push(key)
    })
    await inParts(withSets, key => this.#dead.free(key))
    return ids.size
  }

  /**
   * Removes the requests of sessions that have ended from the entries. A box that has come back since keeps its own.
   */
  async removeEnded(sessions: readonly string[]): Promise<void> {
    const ended = new Set(sessions)
    for (const session of sessions) await this.#room.revoke(session)
    // The sessions that are still dead. A box that has come back since is not among them.
    const dead = new Set<string>()
    const withSets: string[] = []
    await inParts(await this.#scan.usedBy(sessions), async key => {
      const { all, sets } = await this.#decisions.at(key, state => ({
        all: Array.from(state.requests(), each => each.session),
        sets: state.pointers(),
      }))
      const found = [...new Set(all)].filter(session => ended.has(session))
      if (sets.some(({ session }) => ended.has(session))) withSets.push(key)
      if (found.length === 0) return
      // Requests that were seen before that are dead.
      await this.#sessions.lookUpNow(found)
      for (const session of found) if (this.#sessions.isDead(session)) dead.add(session)
      await this.#decisions.at(key, (state, machine, now) => {
        for (const request of found.flatMap(session => state.deadOf(session)))
          machine.decide({ type: 'cancel', request }, now)
      })
    })
    // By now, the requests at their homes are removed.
    await inParts(withSets, key => this.#dead.free(key, dead))
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

/** Does work on keys, on a limited number at a time. Skips keys whose entries another program has written. */
async function inParts<T>(keys: readonly string[], work: (key: string) => Promise<T>): Promise<T[]> {
  const done: T[] = []
  for (let at = 0; at < keys.length; at += AT_ONCE)
    for (const each of await Promise.allSettled(keys.slice(at, at + AT_ONCE).map(work)))
      if (each.status === 'fulfilled') done.push(each.value)
      else if (!(each.reason instanceof DamagedValueError)) throw each.reason
  return done
}
