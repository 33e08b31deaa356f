import { expect } from 'vitest'
import { VirtualClock } from '../../src/clock.js'
import { StateMachine, type AnyEffect } from '../../src/engine/state-machine.js'
import type {
  LockRequest,
  Operation,
  RequestReport,
  RequestStatus,
  SignOutcome,
} from '../../src/engine/contract.js'
import { MemoryState } from '../../src/engine/kit/memory-state.js'
import type { Claim } from '../../src/engine/claim.js'
import { lockRequest } from './lock-request.js'

export const SESSIONS = ['amy', 'ben', 'cat'] as const
export type Session = (typeof SESSIONS)[number]
/** Lock keys, some of which begin alike or look like what stands in the queues. */
export const LOCKS = ['a', 'b', 'b:0', '1:a', 'o\'\u{1f682}"\\ %']

/** What both sides report of a request. */
type Reported = Pick<RequestReport, 'key' | 'phase' | 'claim'>

/** What a port of the lock table has answered to one operation. */
export interface Answered {
  readonly answer: unknown
  /** The hints for all sessions. */
  readonly told: readonly string[]
  /** The holders and waiters afterwards. */
  readonly reports: readonly Reported[]
}

/** A port of the lock table, with a place of its own. */
export interface TablePort {
  decide(session: Session, operation: Operation, now: number): Promise<Answered>
  /** Whether it has enqueues that steal. */
  readonly canSteal?: boolean
  /** Whether it takes signs of life. */
  readonly coversBySigns?: boolean
  /** Whether it may ask for a sign at a time at which no holder expires, because it knows several of them as one. */
  readonly signsEarly?: boolean
  /** Called when nothing more is decided. */
  end?(): void
}

/** Numbers and versions of one side by those of the other: they come up in the same order on both. */
class Counted {
  readonly #other = new Map<number, number>()
  #highest: readonly [number, number] = [0, 0]

  match(one: number, other: number): void {
    if (one === 0 || other === 0) return expect(other).toBe(one)
    const known = this.#other.get(one)
    if (known !== undefined) return expect(other).toBe(known)
    expect(one).toBeGreaterThan(this.#highest[0])
    expect(other).toBeGreaterThan(this.#highest[1])
    this.#highest = [one, other]
    this.#other.set(one, other)
  }

  of(one: number): number {
    return this.#other.get(one) ?? one
  }
}

/** The original in memory and a port on a server, which are given the same operations at the same times. */
export class World {
  readonly #port: TablePort
  readonly #numbers = new Counted()
  readonly #versions = new Counted()
  readonly #claims = new Map<string, readonly Claim[]>()
  /** The last number of each request, as the original has it. */
  readonly granted = new Map<string, number>()
  /** An enqueue that was executed just now. */
  repeatable: Operation | undefined
  readonly requests = new Map<Session, string[]>(SESSIONS.map(session => [session, []]))
  readonly #state = new MemoryState(1000, new VirtualClock())
  readonly #effects: AnyEffect[] = []
  readonly #decisions: StateMachine

  constructor(port: TablePort) {
    this.#port = port
    for (const session of SESSIONS) this.#state.join({ session, host: 'host', pid: 1, label: undefined })
    this.#decisions = new StateMachine(this.#state, effect => this.#effects.push(effect))
  }

  get canSteal(): boolean {
    return this.#port.canSteal ?? false
  }

  get coversBySigns(): boolean {
    return this.#port.coversBySigns ?? false
  }

  /** The request with this id, or one that never was. */
  request(id: string): LockRequest {
    return lockRequest(id, this.#claims.get(id) ?? [{ key: 'a', mode: 'exclusive' }])
  }

  /** Carries an operation out on both sides and compares what comes of it. */
  async decide(session: Session, operation: Operation, now: number): Promise<void> {
    const outcome = this.#decisions.decide(operation, now)
    const hints = this.#effects
      .splice(0)
      .flatMap(effect => (effect.type === 'changed' ? [] : [`${effect.type} ${effect.id}`]))
    const { answer, told, reports } = await this.#port.decide(session, this.#translated(operation), now)
    this.#compare(operation, outcome, answer)
    // No message announces the end of a grant that no other request met; its holder finds out on its own.
    const wakes = (all: readonly string[]): string[] => all.filter(hint => hint.startsWith('wake')).sort()
    expect(wakes(told)).toEqual(wakes(hints))
    for (const hint of told) {
      if (!hint.startsWith('lost ')) continue
      // The port may find out earlier that something is over, but it must be over.
      expect(now, hint).toBeGreaterThanOrEqual(this.#state.request(hint.slice('lost '.length))?.expires ?? 0)
    }
    this.#learn(session, operation, outcome)
    this.#compareQueues(reports, now)
  }

  #translated(operation: Operation): Operation {
    switch (operation.type) {
      case 'renew':
      case 'release':
      case 'extendOrYield':
      case 'downgrade':
        return { ...operation, number: this.#numbers.of(operation.number) }
      case 'commit':
        return {
          ...operation,
          guard: operation.guard && { ...operation.guard, number: this.#numbers.of(operation.guard.number) },
          expect: operation.expect.map(({ key, version }) => ({ key, version: this.#versions.of(version) })),
        }
      default:
        return operation
    }
  }

  #compare(operation: Operation, outcome: unknown, answer: unknown): void {
    const plain = (value: unknown): unknown =>
      JSON.parse(
        JSON.stringify(value ?? null, (name, field: unknown) =>
          ENGINES_OWN.has(name) ? undefined : name === 'place' ? Math.min(field as number, 2) : field,
        ),
      )
    if (operation.type === 'commit' || operation.type === 'read') this.#matchVersions(outcome, answer)
    const status = outcome as RequestStatus
    if (operation.type === 'enqueue' || operation.type === 'checkIn' || operation.type === 'extendOrYield') {
      const other = answer as RequestStatus
      expect(other.state).toBe(status.state)
      if (status.state === 'held' && other.state === 'held') {
        this.#numbers.match(status.number, other.number)
        if (status.read) this.#matchVersions(status.read, other.read)
      }
    }
    if (operation.type === 'alive') return this.#compareSigns(outcome as SignOutcome, answer as SignOutcome)
    expect(plain(answer)).toEqual(plain(outcome))
  }

  #compareSigns(one: SignOutcome, other: SignOutcome): void {
    expect(other.due).toEqual(one.due)
    // A port may count parts of a millisecond.
    if (one.next === Infinity) return expect(other.next).toBe(Infinity)
    expect(other.next).toBeLessThan(one.next + 5)
    if (!this.#port.signsEarly) expect(other.next).toBeGreaterThan(one.next - 5)
  }

  #matchVersions(outcome: unknown, answer: unknown): void {
    const one = versionsIn(outcome)
    const other = versionsIn(answer)
    expect(other.length).toBe(one.length)
    for (const [index, version] of one.entries()) this.#versions.match(version, other[index]!)
  }

  #learn(session: Session, operation: Operation, outcome: unknown): void {
    const { type } = operation
    this.repeatable = type === 'enqueue' ? operation : undefined
    if (type === 'downgrade' && outcome === true) {
      const { id, claims } = operation.request
      this.#claims.set(
        id,
        claims.map(({ key }) => ({ key, mode: 'shared' })),
      )
    }
    if (type !== 'enqueue' && type !== 'checkIn' && type !== 'extendOrYield') return
    const status = outcome as RequestStatus
    if (status.state !== 'held' && status.state !== 'queued') return
    const own = this.requests.get(session)!
    if (!own.includes(status.id)) own.push(status.id)
    if (type === 'enqueue') this.#claims.set(status.id, operation.request.claims)
    if (type === 'extendOrYield' && status.id === operation.next.id) {
      this.#claims.set(status.id, operation.next.claims)
    }
    if (status.state === 'held') this.granted.set(status.id, status.number)
  }

  /** The same requests wait in both, in the same order; what the port knows of holders is true. */
  #compareQueues(inPort: Answered['reports'], now: number): void {
    const outcome = this.#decisions.decide({ type: 'inspect', prefix: '' }, now)
    const line = (report: Reported): string => `${report.key} ${report.phase} ${report.claim.mode}`
    const queued = (reports: readonly Reported[]): string[] =>
      LOCKS.flatMap(key => reports.filter(report => report.key === key && report.phase !== 'held').map(line))
    expect(queued(inPort)).toEqual(queued(outcome))
    const held = outcome.filter(({ phase }) => phase === 'held').map(line)
    for (const report of inPort) if (report.phase === 'held') expect(held).toContain(line(report))
  }
}

/** Fields that differ between an engine and the original, or that only an engine knows. */
const ENGINES_OWN: ReadonlySet<string> = new Set([
  'number',
  'version',
  'changed',
  'versions',
  'sessionsAhead',
  'checkInAfter',
  'age',
  'isUncontended',
])

function versionsIn(value: unknown): number[] {
  if (Array.isArray(value)) return value.flatMap(versionsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => {
    if (name === 'version') return [field as number]
    return name === 'versions' ? (field as number[]) : versionsIn(field)
  })
}
