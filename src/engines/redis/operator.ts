import type { Claim } from '../../engine/claim.js'
import type { ForceRelease, Inspect, List, Revoke } from '../../engine/contract.js'
import { FirstKeys } from '../../engine/kit/first-keys.js'
import type { Reply } from './clients/connection.js'
import { groupedBy } from '../../base/grouped.js'
import type { EngineParts } from './engine-parts.js'
import { detailsIn, parseHeldText, whoIs } from './held-text.js'
import type { Group } from './names.js'
import type { ServerReport } from './outcomes.js'
import type { IdentifiedReport } from './redis-server.js'
import type { TableCalls } from './table-calls.js'
import { sentAgain } from './sent-again.js'
import { timeOf } from './clients/reply.js'

const SCAN_COUNT = '1000'
/** The replies of PTTL for a missing key, and for one that does not expire. */
const MISSING = -2
const NO_EXPIRY = -1
/** The beginning of the text of a held key, also if it has several holders. */
const OWN_TEXT = 'signalbox/1 '
/** The beginning of the ID of a client of another library that holds a key. */
const FOREIGN = '?'

/** Lists and removes the requests of all sessions. Methods reject as the link does. */
export class Operator {
  readonly #parts: EngineParts
  readonly #calls: TableCalls

  constructor(parts: EngineParts, calls: TableCalls) {
    this.#parts = parts
    this.#calls = calls
  }

  /**
   * Returns the requests for these keys with their IDs, in order for each key: those with a record, and grants that
   * only their held keys show.
   */
  async reports({ prefix, exact = false }: Inspect): Promise<readonly IdentifiedReport[]> {
    const { layout, names } = this.#parts
    const groups = exact ? [names.group(prefix)] : await this.#groups()
    const reports: ServerReport[] = []
    for (const group of groups) for (const report of await this.#reports(group)) reports.push(report)
    const recorded = new Set(reports.map(({ id, key }) => `${id} ${key}`))
    const heldNames = exact ? [names.held(prefix)] : await this.#scan(names.heldPattern(prefix), layout.type)
    // A search also finds keys of other programs, which are not locks. If the caller names the lock, another client
    // holds it.
    const held = (await this.#holders(heldNames))
      .filter(({ id }) => exact || !id.startsWith(FOREIGN))
      .filter(({ key, id }) => !recorded.has(`${id} ${key}`))
    // Keys that their recorded holders have released since, and that other holders have taken.
    const replaced = new Set(held.map(({ key }) => key))
    const others = reports
      .filter(({ key }) => (exact ? key === prefix : key.startsWith(prefix)))
      .filter(({ key, phase }) => phase !== 'held' || !replaced.has(key))
      .map(({ details, ...report }) => ({ ...report, ...whoIs(report.id, details) }))
    return [...held, ...others].sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  async forceRelease(operation: ForceRelease): Promise<boolean> {
    const { key, number } = operation
    const { names } = this.#parts
    const held = parseHeldText(await this.#text(operation, key))
    const group = names.group(key)
    if (held) {
      if (held.number !== number) return false
      const keys = detailsIn(held.details).keys ?? [key]
      const claims = keys.map((each): Claim => ({ key: each, mode: 'exclusive' }))
      return this.#take(group, held.id, number, claims)
    }
    const reports = await this.#reports(group)
    const one = reports.find(
      report => report.key === key && report.phase === 'held' && report.number === number,
    )
    if (!one) return false
    const claims = reports.filter(({ id }) => id === one.id).map(({ claim }) => claim)
    return this.#take(group, one.id, number, claims)
  }

  /** Returns the first matching store keys. SCAN finds all of them, in no order. */
  async list(list: List): Promise<string[]> {
    const { names } = this.#parts
    const first = new FirstKeys(list)
    // Finds keys of every type, so that a value that another program has replaced is also listed.
    await this.#eachName(names.valuePattern(list.prefix), [], name => {
      const key = names.keyOf('value', name)
      if (key !== undefined) first.add(key)
    })
    return first.inOrder()
  }

  /** The limiters for which `isMeant` is true. */
  async limiters(isMeant: (limiter: string) => boolean): Promise<string[]> {
    const { names } = this.#parts
    const found = await this.#scan(names.limitsPattern, 'string')
    return found.flatMap(name => names.keyOf('limit', name) ?? []).filter(isMeant)
  }

  /** Removes all requests of a session. @returns the number of removed requests */
  async revoke({ session }: Revoke): Promise<number> {
    const all = await this.reports({ type: 'inspect', prefix: '' })
    const its = all.filter(report => report.session === session)
    const taken = [...groupedBy(its, ({ id }) => id)].map(([id, reports]) => {
      const claims = reports.map(({ claim }) => claim)
      return this.#take(this.#parts.names.group(claims[0]!.key), id, 0, claims)
    })
    await Promise.all(taken)
    return taken.length
  }

  async #take(group: Group, id: string, number: number, claims: readonly Claim[]): Promise<boolean> {
    const take = { type: 'take', request: { id, claims }, number } as const
    return (await this.#calls.send(group, take)) as boolean
  }

  async #reports(group: Group): Promise<ServerReport[]> {
    return (await this.#calls.send(group, { type: 'inspect', prefix: '' })) as ServerReport[]
  }

  /**
   * The groups that have recorded requests. Without any, `reports` needs no call, which a replica could not execute.
   */
  async #groups(): Promise<Group[]> {
    const { names } = this.#parts
    const found = await this.#scan(names.requestsPattern, 'hash')
    return found.map(name => names.groupOfRequests(name))
  }

  /** The holders of those of these held keys that have a single one: an exclusive grant or another program. */
  async #holders(heldNames: readonly string[]): Promise<IdentifiedReport[]> {
    const { names } = this.#parts
    const now = timeOf(await this.#read('', ['TIME']))
    const found = await Promise.all(
      heldNames.map(async (name): Promise<IdentifiedReport[]> => {
        const key = names.keyOfHeld(name)
        if (key === undefined) return []
        const [text, answer] = await Promise.all([
          this.#text({ type: 'inspect', prefix: key, exact: true }, key),
          this.#read(name, ['PTTL', name]),
        ])
        const left = Number(answer)
        const held = parseHeldText(text)
        if (held ? left <= 0 : left === MISSING || text?.startsWith(OWN_TEXT)) return []
        const { id, number, since, details } = held ?? {
          id: FOREIGN + key,
          number: 0,
          since: now,
          details: '',
        }
        return [
          {
            id,
            order: '',
            key,
            ...whoIs(id, details),
            claim: { key, mode: 'exclusive' },
            phase: 'held',
            number,
            age: Math.max(0, now - since),
            expiresIn: left === NO_EXPIRY ? Infinity : left,
          },
        ]
      }),
    )
    return found.flat()
  }

  /** The text of the held key of a lock; undefined if it has another form, or is missing. */
  async #text(operation: Inspect | ForceRelease, key: string): Promise<string | undefined> {
    const { errors, layout, names } = this.#parts
    const name = names.held(key)
    try {
      const text = await this.#read(name, layout.reading(name))
      return typeof text === 'string' ? text : undefined
    } catch (error) {
      throw errors.ofHeld(error, operation, key)
    }
  }

  #read(route: string, args: readonly string[]): Promise<Reply> {
    return sentAgain(() => this.#parts.link.command(route, args))
  }

  async #scan(pattern: string, type: string): Promise<string[]> {
    const names = new Set<string>()
    await this.#eachName(pattern, ['TYPE', type], name => names.add(name))
    return [...names]
  }

  /** Calls `take` with each name, perhaps more than once. @param filter further arguments of SCAN */
  async #eachName(pattern: string, filter: readonly string[], take: (name: string) => void): Promise<void> {
    const { link } = this.#parts
    for (const master of await link.masters()) {
      let cursor: string | undefined
      do {
        const { epoch } = link
        const from = cursor ?? '0'
        const args = ['SCAN', from, 'MATCH', pattern, 'COUNT', SCAN_COUNT, ...filter]
        const answer = await sentAgain(() => master(args))
        const [next, page] = answer as readonly [string, readonly string[]]
        for (const name of page) take(name)
        // A new connection may lead to another server, where the cursor is invalid, so the scan begins again.
        cursor = link.epoch === epoch ? next : undefined
      } while (cursor !== '0')
    }
  }
}
