import { readFileSync } from 'node:fs'
import type { Operation } from '../../../src/engine/contract.js'
import type { Claim } from '../../../src/engine/claim.js'
import { CallArguments, type ServerOperation } from '../../../src/engines/redis/call.js'
import { heldText, whoIs } from '../../../src/engines/redis/held-text.js'
import { luaFile } from '../../../src/engines/redis/lua/lua-file.js'
import { tableCode } from '../../../src/engines/redis/lua/table-code.js'
import { Names } from '../../../src/engines/redis/names.js'
import { outcomeOf, reportsOf, type ServerReport } from '../../../src/engines/redis/outcomes.js'
import type { RedisServer } from '../servers/redis.js'
import { inOrder, type SentHint, type StoredRequest, type StoredTable } from '../stored-table.js'
import { isAlone, LOCKS, type Answered, type Differences, type TablePort } from '../table-world.js'
import { callerOf } from './caller.js'
import { LoadedCode } from './loaded-code.js'

const virtualTime = readFileSync(new URL('virtual-time.lua', import.meta.url), 'utf8')
const readTable = readFileSync(new URL('read-table.lua', import.meta.url), 'utf8')

const writeTable = readFileSync(new URL('write-table.lua', import.meta.url), 'utf8')

/** The code that a port runs. */
interface Code {
  readonly table: LoadedCode
  readonly reader: LoadedCode
  readonly writer: LoadedCode
}

/** A layout of held keys, and how the server executes the code. */
export interface Way {
  /** @param groupMin number of readers that become a group; default: that of the package */
  readonly code: (groupMin?: number) => string
  readonly load: (server: RedisServer, text: string) => Promise<LoadedCode>
}

/** How boxes decide: most of them by a function, those on servers without functions by a script. */
export const WAYS = {
  function: { code: groupMin => tableCode(undefined, groupMin), load: LoadedCode.asFunction },
  script: { code: groupMin => tableCode(undefined, groupMin), load: LoadedCode.asScript },
  Redisson: {
    code: groupMin => tableCode(luaFile('held-hashes'), groupMin),
    load: LoadedCode.asFunction,
  },
} satisfies Record<string, Way>

/** The results of operations that one call executed. */
export interface Together {
  readonly outcomes: readonly unknown[]
  readonly hints: readonly SentHint[]
  /** The keys that the session has to sweep later. */
  readonly reserved: readonly string[]
  readonly reports: readonly ServerReport[]
}

/** A record of a request. */
interface Recorded {
  readonly id: string
  readonly phase: StoredRequest['phase']
  readonly expires: number
  readonly alone?: number
  readonly lease: number
  readonly number: number
  readonly since: number
  readonly details: string
  readonly claims: readonly { key: string; mode: Claim['mode']; permits?: number; max?: number }[]
}

/** The answer of the script `read-table.lua`, which has an empty list as an object. */
type Read = readonly [
  records: readonly Recorded[] | object,
  queues: readonly string[] | object,
  signs: readonly string[] | object,
  held: readonly (readonly [place: number, text: string, ends: number])[] | object,
  published: readonly string[] | object,
]

/** Makes ports over the same code, each for a prefix of its own. */
export type RedisPorts = (prefix: string | number) => RedisTablePort

/** Number of times that ports were made. Each time they get other names. */
let made = 0

/** The port of the lock table in Redis, with a clock that a test sets. */
export class RedisTablePort implements TablePort {
  readonly #server: RedisServer
  readonly #code: Code
  readonly #names: Names
  #stored: StoredTable = { requests: new Map(), queues: new Map() }

  private constructor(
    server: RedisServer,
    code: Code,
    prefix: string,
    readonly differences: Differences,
  ) {
    this.#server = server
    this.#code = code
    this.#names = new Names(prefix, false)
  }

  /** @param groupMin number of readers that become a group; default: that of the package */
  static async over(server: RedisServer, way: Way, groupMin?: number): Promise<RedisPorts> {
    const text = `${virtualTime}return timed((function()\n${way.code(groupMin)}\nend)())`
    const code: Code = {
      table: await way.load(server, text),
      reader: await LoadedCode.asScript(server, readTable),
      writer: await LoadedCode.asScript(server, writeTable),
    }
    const differences: Differences = {
      ...{
        canSteal: true,
        keepsUncontendedAsKeys: true,
        stopsAtWaiter: true,
        groups: groupMin !== undefined,
      },
    }
    const own = `${++made}.`
    return prefix => new RedisTablePort(server, code, `${own}${prefix}:`, differences)
  }

  async decide(session: string, operation: Operation, now: number): Promise<Answered> {
    const asked = this.#asked(operation)
    const call = this.#call(session, asked ? [asked] : [])
    const [, answers, text] = await Promise.all([
      this.#setTime(now),
      this.#code.table.run(call),
      this.#read(),
    ])
    const read = JSON.parse(text) as Read
    this.#stored = this.#tableIn(read, now)
    const own = answers.at(-1) as string[]
    return {
      answer: asked ? outcomeOf(asked, answers[0]!) : false,
      ...this.#hintsIn(session, own, list(read[4])),
      stored: this.#stored,
    }
  }

  async write(stored: StoredTable, now: number): Promise<void> {
    const { numbers, queues, requests, signs } = this.#names.group('')
    const records: object[] = []
    const entries: string[] = []
    const held = new Map<string, readonly [text: string, ends: number]>()
    for (const [place, request] of [...stored.requests.values()].entries()) {
      const { id, phase, expires, seen, lease, number, since, label, claims } = request
      const sequence = String(place + 1).padStart(16, '0')
      const details = heldText(callerOf(id.slice(0, id.indexOf('.'))).member, label, claims)
      for (const { key, mode } of claims) {
        if (phase !== 'held' || expires <= now) continue
        const [, ends] = held.get(key) ?? ['', 0]
        if (mode === 'exclusive') held.set(key, [`signalbox/1 ${id} ${number} ${since} ${details}`, expires])
        else held.set(key, [`signalbox/1 shared ${queues}`, Math.max(ends, expires)])
      }
      if (isAlone(id, stored)) continue
      const alone = seen === undefined ? {} : { alone: expires }
      records.push({
        ...{ id, phase, expires: seen === undefined ? expires : Number.MAX_SAFE_INTEGER, ...alone },
        ...{ lease, number, since, details, sequence },
        claims: claims.map(claim => ({ ...claim, held: this.#names.held(claim.key) })),
      })
      for (const { key } of claims) entries.push(`${Buffer.byteLength(key)}:${key}:${sequence}${id}`)
    }
    const keys = [...held].map(([key, [text, ends]]) => [this.#names.held(key), text, ends])
    const names = [numbers, queues, requests, signs]
    await this.#code.writer.on(['4', ...names, JSON.stringify([now, records, entries, keys])])
    this.#stored = stored
  }

  /** Executes operations by one call. */
  async together(session: string, operations: readonly Operation[], now: number): Promise<Together> {
    const call = this.#call(session, [...operations, { type: 'inspect', prefix: '' }])
    const [, answers, text] = await Promise.all([
      this.#setTime(now),
      this.#code.table.run(call),
      this.#read(),
    ])
    const [inspected, own] = answers.slice(operations.length)
    return {
      outcomes: operations.map((operation, index) => outcomeOf(operation, answers[index]!)),
      ...this.#hintsIn(session, own as string[], list((JSON.parse(text) as Read)[4])),
      reports: reportsOf(inspected!),
    }
  }

  /** Deletes the held key of a lock, as another program may. */
  async deleteHeld(key: string): Promise<void> {
    await this.#server.command('DEL', this.#names.held(key))
  }

  #call(session: string, operations: readonly ServerOperation[]): CallArguments {
    const call = new CallArguments(this.#names, this.#names.group(''), callerOf(session))
    for (const operation of operations) call.add(operation)
    return call
  }

  /** Converts an operation for the server. An operator looks up the request of a grant first. */
  #asked(operation: Operation): ServerOperation | undefined {
    if (operation.type !== 'forceRelease') return operation
    const { key, number } = operation
    const request = [...this.#stored.requests.values()].find(
      each => each.phase === 'held' && each.number === number && each.claims.some(claim => claim.key === key),
    )
    return request && { type: 'take', request, number }
  }

  #setTime(now: number): Promise<unknown> {
    return this.#server.command('HSET', `${this.#names.group('').numbers}:virtual`, 'now', now)
  }

  async #read(): Promise<string> {
    const { numbers, queues, requests, signs } = this.#names.group('')
    const keys = [numbers, queues, requests, signs, ...LOCKS.map(key => this.#names.held(key))]
    return String(await this.#code.reader.on([String(keys.length), ...keys]))
  }

  #hintsIn(
    session: string,
    own: readonly string[],
    published: readonly string[],
  ): { hints: SentHint[]; reserved: string[] } {
    const hintOf = (to: string, text: string): SentHint[] => {
      const [type, id] = text.split(' ') as [SentHint['type'] | 'reserved' | 'foreign', string]
      return type === 'reserved' || type === 'foreign' ? [] : [{ session: to, type, id }]
    }
    const { channels } = this.#names.group('')
    const others = published
      .filter(each => each.startsWith(channels))
      .flatMap(each => {
        const space = each.indexOf(' ', channels.length)
        return hintOf(each.slice(channels.length, space), each.slice(space + 1))
      })
    return {
      hints: [...own.flatMap(text => hintOf(session, text)), ...others],
      reserved: own.filter(text => text.startsWith('reserved ')).map(text => text.slice('reserved '.length)),
    }
  }

  /** Builds the table from records, queues and held keys. */
  #tableIn([records, entries, signs, held]: Read, now: number): StoredTable {
    const seen = new Map<string, number>()
    const words = list(signs)
    for (let at = 0; at < words.length; at += 2) seen.set(words[at]!, Number(words[at + 1]))
    const requests = new Map<string, StoredRequest>()
    for (const record of list(records)) {
      const { id, phase, alone, number, since, details } = record
      const { session, label } = whoIs(id, details)
      requests.set(id, {
        ...{ id, phase, number, since, label },
        expires: alone ?? record.expires,
        seen: alone === undefined ? undefined : (seen.get(session) ?? -Infinity),
        lease: phase === 'held' ? undefined : record.lease,
        claims: list(record.claims).map(({ key, mode, permits, max }): Claim =>
          mode === 'permits' ? { key, mode, permits: permits!, max: max! } : { key, mode },
        ),
      })
    }
    const queues = new Map<string, string[]>()
    for (const entry of list(entries)) {
      const length = Number(entry.slice(0, entry.indexOf(':')))
      const rest = Buffer.from(entry).subarray(String(length).length + 1)
      const key = rest.subarray(0, length).toString()
      queues.set(key, [...(queues.get(key) ?? []), rest.subarray(length + 1 + 16).toString()])
    }
    const heldBy = new Map<string, string>()
    for (const [place, text, ends] of list(held)) {
      const key = LOCKS[place - 1]!
      const [, id, digits, since, details] = /^signalbox\/1 (\S+) (\d+) (\d+) (.*)$/s.exec(text) ?? []
      if (id === undefined) {
        const last = Math.max(
          ...(queues.get(key) ?? [])
            .map(each => requests.get(each)!)
            .filter(
              ({ phase, claims }) =>
                phase === 'held' && claims.find(claim => claim.key === key)!.mode !== 'exclusive',
            )
            .map(({ expires }) => expires),
        )
        // It may outlast its holders. The next request that reads it removes it.
        if (ends < last) throw new Error(`the held key of ${key} expires before its last holder`)
        continue
      }
      heldBy.set(key, id)
      const number = Number(digits)
      const known = requests.get(id)
      if (known && (known.phase !== 'held' || known.number !== number || known.expires !== ends))
        throw new Error(
          `the held key of ${key} says ${text} until ${ends}, the record ${JSON.stringify(known)}`,
        )
      const claims = known?.claims ?? []
      const uncontended = {
        id,
        phase: 'held',
        expires: ends,
        seen: undefined,
        lease: undefined,
        number,
      } as const
      const { label } = whoIs(id, details!)
      requests.set(id, {
        ...(known ?? { ...uncontended, since: Number(since), label }),
        claims: claims.some(claim => claim.key === key) ? claims : [...claims, { key, mode: 'exclusive' }],
      })
      const queue = queues.get(key) ?? []
      if (!queue.includes(id)) queues.set(key, [id, ...queue])
    }
    for (const [id, request] of requests) {
      const { phase, expires, claims } = request
      for (const { key, mode } of phase === 'held' && expires > now ? claims : [])
        if (mode === 'exclusive' && heldBy.get(key) !== id)
          throw new Error(`the held key of ${key} does not name ${id}`)
      requests.set(id, { ...request, claims: inOrder(claims) })
    }
    return { requests, queues }
  }
}

function list<T>(read: readonly T[] | object): readonly T[] {
  return Array.isArray(read) ? (read as readonly T[]) : []
}
