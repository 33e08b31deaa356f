import { expect, test } from 'vitest'
import { Random } from '../../conformance/src/random.js'
import type { Claim } from 'signalbox'
import { MemoryState, StateMachine, type LockRequest, type Operation } from 'signalbox/engine'
import { VirtualClock } from 'signalbox/limits'
import { decodeKeyEntry, encodeKeyEntry } from '../src/entry-text.js'
import { emptyEntry } from '../src/key-entry.js'
import { OpenEntry } from '../src/open-entry.js'
import { Sightings } from '../src/sightings.js'

const KEY = 'k'
const STEPS = 80
const HISTORIES = 80

/** Decides operations. The result contains the outcome and the hints. */
type Decide = (operation: Operation) => unknown

/** Returns the original decisions, in memory. */
function original(clock: VirtualClock): Decide {
  const told: unknown[] = []
  const machine = new StateMachine(new MemoryState(1000, clock), effect => told.push(effect))
  return operation => [machine.decide(operation, clock.now()), told.splice(0)]
}

/** Returns decisions on the text of an entry, which is decoded before each operation and encoded after it. */
function inText(clock: VirtualClock): Decide {
  let text = encodeKeyEntry(emptyEntry())
  let count = 0
  let newest = 5000
  const sightings = new Sightings()
  const signs = { isCovered: () => false, seen: () => -Infinity }
  const grants = { renewedAt: () => -Infinity, hasEnded: () => true }
  const nextVersion = (above: number): number => (newest = Math.max(newest, above) + 1)
  return operation => {
    const told: unknown[] = []
    const before = text
    const state = new OpenEntry(
      KEY,
      decodeKeyEntry(KEY, before),
      { sightings, signs, grants, isAwaited: () => undefined, nextVersion },
      clock,
    )
    const outcome = new StateMachine(state, effect => told.push(effect)).decide(operation, clock.now())
    if (!state.isChanged) return [outcome, told]
    const entry = state.close({ by: 'box', count: ++count })
    text = encodeKeyEntry(entry)
    expect(text).not.toBe(before)
    expect(decodeKeyEntry(KEY, text)).toEqual(entry)
    sightings.see(entry.locks.requests, clock.now())
    return [outcome, told]
  }
}

/** Replaces numbers and versions by their order of appearance, and fails if a new one is not the greatest. */
class Ranks {
  readonly #ranks = new Map<number, number>([[0, 0]])
  #newest = 0

  of(number: number): number {
    const known = this.#ranks.get(number)
    if (known !== undefined) return known
    expect(number).toBeGreaterThan(this.#newest)
    this.#newest = number
    this.#ranks.set(number, this.#ranks.size)
    return this.#ranks.size - 1
  }

  real(rank: number): number {
    return [...this.#ranks].find(([, other]) => other === rank)?.[0] ?? rank
  }
}

class Side {
  readonly #decide: Decide
  readonly #numbers = new Ranks()
  readonly #versions = new Ranks()

  constructor(decide: Decide) {
    this.#decide = decide
  }

  decide(operation: Operation): unknown {
    const real = structuredClone(operation) as { number?: number; guard?: { number: number } } & Operation
    if (real.number !== undefined) real.number = this.#numbers.real(real.number)
    if (real.type === 'commit') {
      if (real.guard) (real.guard as { number: number }).number = this.#numbers.real(real.guard.number)
      for (const each of real.expect)
        (each as { version: number }).version = this.#versions.real(each.version)
    }
    const ranked = (name: string, value: unknown): unknown => {
      if (name === 'changed' || name === 'age') return undefined
      if (name === 'number') return this.#numbers.of(value as number)
      if (name === 'version') return this.#versions.of(value as number)
      if (name === 'versions') return (value as number[]).map(each => this.#versions.of(each))
      return value
    }
    return JSON.parse(JSON.stringify(this.#decide(real), ranked))
  }
}

function randomOperation(random: Random, requests: LockRequest[], step: number, granted: number): Operation {
  const request = requests.at(-1 - random.below(Math.min(4, requests.length))) ?? {
    id: 'none',
    session: 'amy',
    claims: [{ key: KEY, mode: 'exclusive' }],
    label: undefined,
  }
  const number = 1 + random.below(Math.max(granted, 1))
  const lease = [100, 1000, 30_000][random.below(3)]!
  const wait = [0, 50, 5000, Infinity, Infinity][random.below(5)]!
  const read =
    random.below(2) === 0 ? undefined : { keys: random.below(2) ? [KEY] : [], ids: [{ key: KEY, id: 'one' }] }
  const claims: Claim[] = [
    { key: KEY, mode: 'exclusive' },
    { key: KEY, mode: 'shared' },
    { key: KEY, mode: 'permits', permits: 1 + random.below(3), max: random.below(6) === 0 ? 4 : 3 },
  ]
  const next = (): LockRequest => {
    const made = {
      id: `${step}`,
      session: ['amy', 'ben', 'cat'][random.below(3)]!,
      claims: [claims[random.below(3)]!],
      label: random.below(2) === 0 ? undefined : 'label',
    }
    requests.push(made)
    return made
  }
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return { type: 'enqueue', request: random.below(5) === 0 ? request : next(), lease, wait, read }
    case 4:
    case 5:
      return { type: 'checkIn', request, lease, wait: Math.max(wait, 1), read }
    case 6:
      return { type: 'cancel', request }
    case 7:
      return { type: 'renew', request, number, lease }
    case 8:
    case 9:
      return { type: 'release', request, number }
    case 10:
      return { type: 'extendOrYield', request, number, next: next(), lease, wait: Math.max(wait, 1) }
    case 11:
      return [
        { type: 'downgrade', request, number } as const,
        { type: 'sweepExpired', keys: [KEY] } as const,
        { type: 'forceRelease', key: KEY, number } as const,
        { type: 'revoke', session: request.session } as const,
      ][random.below(4)]!
    case 12:
      return { type: 'inspect', prefix: '' }
    default:
      return {
        type: 'commit',
        guard: random.below(2) === 0 ? undefined : { request, number },
        expect: random.below(2) === 0 ? [] : [{ key: KEY, version: random.below(3) }],
        writes:
          random.below(4) === 0
            ? []
            : [{ key: KEY, value: random.below(4) === 0 ? undefined : `{"at":${step}}` }],
        record: random.below(3) === 0 ? [{ key: KEY, id: ['one', 'two'][random.below(2)]! }] : [],
        retention: 1e9,
        release: random.below(2) === 0,
      }
  }
}

test('operations on the text of an entry are decided as in memory, in random histories', () => {
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const random = new Random(seed)
    const clock = new VirtualClock(1000)
    const [one, other] = [new Side(original(clock)), new Side(inText(clock))]
    const requests: LockRequest[] = []
    const history: string[] = []
    let granted = 0
    for (let step = 0; step < STEPS; step++) {
      clock.advance([0, 0, 0, 5, 30, 400, 1200, 6000][random.below(8)]!)
      const operation = randomOperation(random, requests, step, granted)
      history.push(`${clock.now()} ${JSON.stringify(operation)}`)
      const expected = one.decide(operation)
      granted += JSON.stringify(expected).includes('"held"') ? 1 : 0
      expect(other.decide(operation), `seed ${seed}\n${history.join('\n')}`).toEqual(expected)
    }
  }
})
