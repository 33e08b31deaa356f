import type { Claim } from '../../engine/claim.js'
import type { ForceRelease, RequestReport, Revoke } from '../../engine/contract.js'
import type { RedisLink } from './clients/redis-link.js'
import { groupedBy } from '../../grouped.js'
import type { HeldLayout } from './held-layout.js'
import { HeldText, whoIs } from './held-text.js'
import type { Group, Names } from './names.js'
import type { ScriptReport } from './outcomes.js'
import type { ScriptCalls } from './script-calls.js'

const SCAN_COUNT = '1000'

/** A request as `inspect` shows it, with what tells it from all others. */
export interface IdentifiedReport extends RequestReport {
  readonly id: string
  /** Its place in the queue of the key: the lesser text comes first. */
  readonly order: string
}

/** What an operator's view and acts need. */
export interface OperatorParts {
  readonly link: RedisLink
  readonly names: Names
  readonly layout: HeldLayout
  readonly calls: ScriptCalls
}

/** A key that is held by an exclusive grant. */
interface HeldKey {
  readonly key: string
  readonly held: HeldText
  readonly expiresIn: number
  readonly age: number
}

/** Looks at the requests of all sessions, and takes them away. Methods reject as the link does. */
export class Operator {
  readonly #parts: OperatorParts

  constructor(parts: OperatorParts) {
    this.#parts = parts
  }

  /**
   * All requests for keys that begin with `prefix`, with their ids, each key's in order: those with a record from their
   * groups, and grants that are known by their held keys only.
   */
  async reports(prefix: string): Promise<readonly IdentifiedReport[]> {
    const reports: ScriptReport[] = []
    for (const group of await this.#groups()) reports.push(...(await this.#reports(group)))
    const recorded = new Set(
      reports.filter(({ phase }) => phase === 'held').map(({ id, key }) => `${id} ${key}`),
    )
    const light = (await this.#heldKeys(prefix)).filter(({ key, held }) => !recorded.has(`${held.id} ${key}`))
    const held = light.map(({ key, held: text, expiresIn, age }) => ({
      id: text.id,
      order: '',
      key,
      ...whoIs(text.id, text.details),
      claim: { key, mode: 'exclusive' as const },
      phase: 'held' as const,
      number: text.number,
      age,
      expiresIn,
    }))
    const others = reports
      .filter(({ key }) => key.startsWith(prefix))
      .map(({ details, ...report }) => ({ ...report, ...whoIs(report.id, details) }))
    return [...held, ...others].sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  async forceRelease({ key, number }: ForceRelease): Promise<boolean> {
    const { names } = this.#parts
    const held = await this.#heldText(names.held(key))
    const group = names.group(key)
    if (held) {
      if (held.number !== number) return false
      const keys = held.keys ?? [key]
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

  /** @returns how many requests were taken away. */
  async revoke({ session }: Revoke): Promise<number> {
    const its = (await this.reports('')).filter(report => report.session === session)
    const taken = [...groupedBy(its, ({ id }) => id)].map(([id, reports]) => {
      const claims = reports.map(({ claim }) => claim)
      return this.#take(this.#parts.names.group(claims[0]!.key), id, 0, claims)
    })
    await Promise.all(taken)
    return taken.length
  }

  async #take(group: Group, id: string, number: number, claims: readonly Claim[]): Promise<boolean> {
    const take = { type: 'take', request: { id, claims }, number } as const
    return (await this.#parts.calls.send(group, take)) as boolean
  }

  async #reports(group: Group): Promise<ScriptReport[]> {
    return (await this.#parts.calls.send(group, { type: 'inspect', prefix: '' })) as ScriptReport[]
  }

  /** The groups in which there are queues. */
  async #groups(): Promise<Group[]> {
    const { names } = this.#parts
    const found = await this.#scan(names.requestsPattern, 'hash')
    return found.map(name => names.groupOfRequests(name))
  }

  /** The keys held by exclusive grants of Signalbox. */
  async #heldKeys(start: string): Promise<HeldKey[]> {
    const { layout, link, names } = this.#parts
    const [seconds, micros] = (await link.command('', ['TIME'])) as readonly string[]
    const now = Number(seconds) * 1000 + Number(micros) / 1000
    const scanned = await this.#scan(names.heldPattern(start), layout.type)
    const found = await Promise.all(
      scanned.map(async (name): Promise<HeldKey[]> => {
        const key = names.keyOfHeld(name)
        if (key === undefined) return []
        const [held, left] = await Promise.all([this.#heldText(name), link.command(name, ['PTTL', name])])
        if (!held || Number(left) <= 0) return []
        return [{ key, held, expiresIn: Number(left), age: Math.max(0, now - held.since) }]
      }),
    )
    return found.flat()
  }

  /** What a held key says, if an exclusive grant of Signalbox holds it. */
  async #heldText(name: string): Promise<HeldText | undefined> {
    const { layout, link } = this.#parts
    const text = await link.command(name, layout.reading(name))
    return typeof text === 'string' ? HeldText.of(text) : undefined
  }

  async #scan(pattern: string, type: string): Promise<string[]> {
    const names = new Set<string>()
    for (const master of await this.#parts.link.masters()) {
      let cursor = '0'
      do {
        const answer = await master(['SCAN', cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT, 'TYPE', type])
        const [next, page] = answer as readonly [string, readonly string[]]
        cursor = next
        for (const name of page) names.add(name)
      } while (cursor !== '0')
    }
    return [...names]
  }
}
