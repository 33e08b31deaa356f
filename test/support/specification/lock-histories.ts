import type { History as ChaosHistory, LockRequest } from '../../../apps/chaos/history.js'
import { groupedBy } from '../../../src/base/grouped.js'
import type { LockOperation, RequestStatus, SignOutcome } from '../../../src/engine/contract.js'
import { entryTtl } from '../../../src/engine/wait-times.js'
import type { History } from '../../simulation/history.js'

/** A value of TLA+. */
type Value = string | number | boolean | ReadonlySet<Value> | { readonly [field: string]: Value }

/** A step of the module `LockHistory`, with the fields that it reads there. Times are in microseconds. */
export interface LockEvent {
  readonly at: number
  readonly op: string
  readonly [field: string]: Value
}

/** Number of turns of one grant number. For the resource, each turn is a grant of its own. */
const TURNS = 1024n
/** Longer than any lease or run. */
const FOREVER = 1_000_000_000
/** Maximum rounding error of the difference of two times, in microseconds. */
const ROUNDING = 1

const micros = (milliseconds: number): number => Math.round(milliseconds * 1000)

/** Returns the events of an exclusive lock in the history of a simulation, until all tasks have ended. */
export function simulatedEvents(history: History, key: string): LockEvent[] {
  const events: LockEvent[] = []
  const table = new TableEvents(history, key)
  for (const { at, who, what, detail } of history.entries) {
    if (what === 'has drained') break
    if (who === 'server') events.push(...table.of(micros(at), what.split(' ')[0]!, detail as Applied))
    else events.push(...table.client(micros(at), who, what, detail as Seen))
  }
  return events
}

interface Applied {
  readonly operation: LockOperation
  readonly outcome: unknown
}

interface Seen {
  readonly key?: string
  readonly token: bigint
  readonly for?: number
}

/** Converts the entries of a simulation's history into events of one key. */
class TableEvents {
  readonly #key: string
  readonly #origin: number
  readonly #clients = new Map<string, string>()
  readonly #ids = new Map<string, number>()
  readonly #numbers = new Set<number>()

  constructor({ origin }: History, key: string) {
    this.#key = key
    this.#origin = origin
  }

  of(at: number, by: string, { operation, outcome }: Applied): LockEvent[] {
    const event = { at, op: operation.type, by }
    switch (operation.type) {
      case 'alive': {
        this.#clients.set(operation.session, by)
        const named = operation.requests.filter(request => this.#claims(request))
        const { due } = outcome as SignOutcome
        return [
          {
            ...event,
            named: new Set(named.map(request => this.#request(by, request.id))),
            due: new Set(named.filter(({ id }) => due.includes(id)).map(({ id }) => this.#request(by, id))),
          },
        ]
      }
      case 'revoke':
        return [{ ...event, by: this.#clients.get(operation.session) ?? by }]
      case 'sweepExpired':
        return operation.keys.includes(this.#key) ? [event] : []
      case 'enqueue':
      case 'checkIn':
      case 'extendOrYield': {
        this.#clients.set(operation.request.session, by)
        if (!this.#claims(operation.request)) return []
        const status = outcome as RequestStatus
        if (status.state === 'held') this.#numbers.add(status.number)
        const yields = operation.type === 'extendOrYield'
        const answers =
          status.state === 'held' || status.state === 'queued' ? status.id : operation.request.id
        return [
          {
            ...event,
            req: this.#request(by, operation.request.id),
            lease: micros(operation.lease),
            ttl: micros(entryTtl(operation)),
            waits: operation.wait !== 0,
            reply: status.state,
            answers: this.#request(by, answers),
            number: status.state === 'held' ? status.number - this.#origin : 0,
            ...(yields && {
              next: this.#request(by, operation.next.id),
              held: operation.number - this.#origin,
            }),
          },
        ]
      }
      case 'renew':
      case 'release':
      case 'cancel': {
        if (!this.#claims(operation.request)) return []
        const named = { ...event, req: this.#request(by, operation.request.id) }
        if (operation.type === 'cancel') return [named]
        const granted = { ...named, number: operation.number - this.#origin, reply: outcome as boolean }
        return [operation.type === 'renew' ? { ...granted, lease: micros(operation.lease) } : granted]
      }
      default:
        return []
    }
  }

  client(at: number, by: string, what: string, detail: Seen): LockEvent[] {
    switch (what) {
      case 'is given':
      case 'holds':
        return this.#isHere(detail) ? holds(at, by, this.#number(detail), micros(detail.for!)) : []
      case 'releases':
      case 'has lost':
        return this.#isHere(detail) ? [{ at, op: 'ends', by }] : []
      case 'accepts':
      case 'refuses': {
        if (detail.key !== this.#key) return []
        const number = Number(detail.token - BigInt(this.#origin) * TURNS)
        return [{ at, op: 'write', by, number, accepted: what === 'accepts' }]
      }
      default:
        return []
    }
  }

  #claims({ claims }: { readonly claims: readonly { readonly key: string }[] }): boolean {
    return claims.some(({ key }) => key === this.#key)
  }

  #isHere({ token }: Seen): boolean {
    return this.#numbers.has(Number(token / TURNS))
  }

  #number({ token }: Seen): number {
    return Number(token / TURNS) - this.#origin
  }

  #request(client: string, id: string): Value {
    if (!this.#ids.has(id)) this.#ids.set(id, this.#ids.size + 1)
    return { client, id: this.#ids.get(id)! }
  }
}

/**
 * Returns the events of each lock that the clients of a run of `signalbox chaos` saw. Places the steps of the server at
 * possible times: each grant as early as its request and the end of the earlier grant allow, each end as early as its
 * client allows.
 */
export function chaosEvents({ requests, updates }: ChaosHistory): LockEvent[][] {
  return [...groupedBy(requests, ({ key }) => key)].map(([key, ofKey]) => {
    const granted = ofKey
      .filter(({ token }) => token !== undefined)
      .sort((one, other) => (BigInt(one.token!) < BigInt(other.token!) ? -1 : 1))
    const numbers = new Map(granted.map(({ token }, index) => [token!, index + 1]))
    const events: LockEvent[] = []
    let free = 0
    for (const request of granted) {
      const grant = grantEvents(request, numbers.get(request.token!)!, free)
      events.push(...grant)
      free = grant.at(-1)!.at
    }
    for (const { key: written, fenced, accepted, token, at, who } of updates) {
      if (written !== key || !fenced || !accepted || token === undefined) continue
      events.push({ at: micros(at), op: 'write', by: who, number: numbers.get(token) ?? 0, accepted })
    }
    return events
      .map((event, order) => ({ event, order }))
      .sort((one, other) => one.event.at - other.event.at || one.order - other.order)
      .map(({ event }) => event)
  })
}

function grantEvents(
  { who, asked, granted, heldUntil, leaving, end }: LockRequest,
  number: number,
  free: number,
): LockEvent[] {
  const req = { client: who, id: number }
  const begins = Math.max(micros(asked), free)
  const isReleased = end === 'released'
  const ends = Math.max(begins, micros((isReleased ? leaving : heldUntil) ?? granted!))
  const terms = { lease: FOREVER, ttl: FOREVER, waits: false, reply: 'held', answers: req }
  return [
    { at: begins, op: 'enqueue', by: who, req, number, ...terms },
    ...holds(micros(granted!), who, number, micros((heldUntil ?? granted!) - granted!)),
    ...(isReleased ? [{ at: ends, op: 'ends', by: who }] : []),
    isReleased
      ? { at: ends, op: 'release', by: who, req, number, reply: true }
      : { at: ends, op: 'forceRelease', by: who, number },
  ]
}

/** Returns no event for a grant that ends at once. */
function holds(at: number, by: string, number: number, rest: number): LockEvent[] {
  return rest > ROUNDING ? [{ at, op: 'holds', by, number, rest: rest - ROUNDING }] : []
}

/** Returns the text of the module that `LockHistory` extends. */
export function historiesModule(histories: readonly (readonly LockEvent[])[]): string {
  const clients = new Set(histories.flatMap(events => events.map(({ by }) => by!)))
  const texts = histories.map(events => {
    let last = events[0]?.at ?? 0
    const steps = events.map(({ at, ...fields }) => {
      const after = at - last
      last = at
      return text({ after, ...fields })
    })
    return `<<\n${steps.join(',\n')}>>`
  })
  return [
    '---- MODULE Histories ----',
    `HistoryClients == ${text(clients)}`,
    `Histories == <<\n${texts.join(',\n')}>>`,
    '====',
  ].join('\n')
}

function text(value: Value): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') return String(value)
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE'
  if (value instanceof Set) return `{${[...value].map(text).join(', ')}}`
  return `[${Object.entries(value)
    .map(([name, field]) => `${name} |-> ${text(field as Value)}`)
    .join(', ')}]`
}
