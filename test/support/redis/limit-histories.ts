import { expect } from 'vitest'
import { limitCode } from '../../../src/engines/redis/lua/limit-code.js'
import { limitArguments, reservedOf } from '../../../src/engines/redis/limits.js'
import type { WindowDefinition } from '../../../src/engine/limits/definition.js'
import { reservePermits, type LimiterState } from '../../../src/engine/limits/reserve-permits.js'
import type { ReservePermits, ReturnedPermits } from '../../../src/engine/limits/reservation.js'
import type { Reply } from '../../../src/engines/redis/clients/connection.js'
import { Random } from '../../../packages/conformance/src/random.js'
import type { RedisServer } from '../servers/redis.js'
import { inLanes } from '../lanes.js'
import { LoadedCode } from './loaded-code.js'

/** Number of decisions of a history. */
const STEPS = 60

/** Half of the maximum number of equal units of a request. */
const MAX_UNITS = 1000

/** The code with a clock that the test sets, and with records that outlive a history. */
const CODE = limitCode({
  clock: `now = tonumber(call('GET', KEY .. ':now'))`,
  expiry: '3600000',
})

const DAY = 86_400_000
/** Around the change of clocks in Berlin, where a day has 25 hours. */
const WALL = Date.UTC(2026, 9, 24, 20)

function window(
  kind: WindowDefinition['kind'],
  limit: number,
  per: number,
  jitter = 0,
  timeZone = '',
  unit?: string,
): WindowDefinition {
  const hold = Math.max(Math.min(per * 0.02, 1000), 5)
  return { kind, limit, per, hold, guard: jitter + hold, timeZone, unit }
}

const DEFINITIONS: readonly (readonly WindowDefinition[])[] = [
  [window('sliding', 3, 100)],
  [window('sliding', 20, 1000)],
  [window('sliding', 20, 1000), window('sliding', 50, 10_000)],
  // The number above which grants share an entry.
  [window('sliding', 1000, 1000, 3)],
  // Long enough for most decisions of a history to share one.
  [window('sliding', 50_000, 60_000)],
  [window('sliding', 50_000, 60_000, 5)],
  [window('smooth', 7, 700)],
  [window('calendar', 5, 300)],
  [window('calendar', 30, 1000, 50), window('sliding', 20, 700)],
  [window('calendar', 10, DAY, 0, 'Europe/Berlin'), window('smooth', 3, 100)],
  [window('sliding', 5, 1000)],
  [window('sliding', 20, 1000), window('sliding', 50, 1000, 0, '', 'tokens')],
  [
    window('sliding', 10, 500),
    window('smooth', 40, 700, 0, '', 'tokens'),
    window('calendar', 30, 300, 0, '', 'bytes'),
  ],
  [window('sliding', 50_000, 60_000, 0, '', 'tokens')],
]

/**
 * Compares the decision and its port in Redis by random histories.
 * @param first the seed of the first history; the others follow it
 */
export async function compareLimits(server: RedisServer, first: number, count: number): Promise<void> {
  const code = await LoadedCode.asFunction(server, CODE)
  await inLanes(first, count, seed => compare(server, code, seed))
}

async function compare(server: RedisServer, code: LoadedCode, seed: number): Promise<void> {
  const random = new Random(seed)
  const key = `limit:${seed}`
  // Mostly one definition, as it should be.
  const mostly = random.below(DEFINITIONS.length)
  const mixed = random.below(2) === 0
  let state: LimiterState | undefined
  let now = WALL + random.below(3 * 3_600_000) + random.below(1000) / 1000
  const given: ReturnedPermits[] = []
  const history: string[] = []
  for (let step = 1; step <= STEPS; step++) {
    // After the longest step no limit is in force, and only long ones are known.
    now += [0, 0, 0.125, 7, 40, 333.3, 1200, -5, -30_000, 25_000][
      random.below(random.below(8) === 0 ? 10 : 7)
    ]!
    const isOther = mixed && random.below(6) === 0
    const windows = DEFINITIONS[isOther ? random.below(DEFINITIONS.length) : mostly]!
    const request = random.below(12) === 0 ? operators(random) : randomRequest(random, windows, given)
    history.push(`${now} ${JSON.stringify(request)}`)
    const decision = reservePermits(state, request, now, now)
    state = decision.state
    const lead = Math.max(request.hold - decision.reserved.hold, 0)
    given.push(
      ...decision.reserved.units.flatMap(({ n, at }, place) =>
        n > 0
          ? { n, at, from: random.below(8) === 0 ? at : at - lead, amounts: request.units[place]!.amounts }
          : [],
      ),
    )
    const set = server.command('SET', `${key}:now`, String(now))
    const args = limitArguments(step, request, now)
    const answer = await code.on(['1', key, ...args])
    await set
    const message = `seed ${seed}:\n${history.join('\n')}`
    expect(reservedOf(answer as Reply, request), message).toEqual(decision.reserved)
  }
}

/** Returns a random pause, which may outlive all counts, in milliseconds. */
function randomPause(random: Random): number {
  return random.below(8) === 0 ? 60_000 : Math.max(random.below(900) - 300, 0)
}

/** An operator names no limits: it ends a pause, or asks for nothing. */
function operators(random: Random): ReservePermits {
  const pause = random.below(2) === 0 ? 0 : undefined
  const nothing = { windows: [], units: [], horizon: 0, hold: 0, returns: [], explain: undefined }
  return { limiter: 'it', session: 'operator', ...nothing, pause }
}

function randomTenants(random: Random): ReservePermits['tenants'] {
  const names = ['a', 'b', 'b', '', 'tenant ä\n'].filter(() => random.below(2) === 0)
  return random.below(8) === 0
    ? undefined
    : names.map(name => ({ name, weight: [1, 1, 2, 0.5, 0.001][random.below(5)]! }))
}

function randomRequest(
  random: Random,
  windows: readonly WindowDefinition[],
  given: ReturnedPermits[],
): ReservePermits {
  const most = Math.min(...windows.map(({ limit }) => limit))
  const some = (): number => 1 + random.below(random.below(4) === 0 ? most : Math.min(most, 3))
  const measures = [...new Set(windows.flatMap(({ unit }) => unit ?? []))]
  const amounts = (): number[] | undefined =>
    measures.length === 0
      ? undefined
      : measures.map(() => (random.below(4) === 0 ? 0 : 1 + random.below(Math.min(most, 20))))
  // Most calls ask for equal permits and nothing else, for which the script has a fast path.
  const plain = random.below(2) === 0
  const units = Array.from({ length: plain ? 1 : random.below(6) }, () => ({
    n: some(),
    more: random.below(4) === 0 && measures.length === 0 ? random.below(most) : 0,
    amounts: amounts(),
    within: [0, 100, Infinity, Infinity][random.below(4)]!,
  })).flatMap(unit =>
    Array.from(
      { length: random.below(2) === 0 ? 1 : 1 + random.below(2 * Math.min(most, MAX_UNITS)) },
      () => unit,
    ),
  )
  const returns = []
  const returnable = plain ? [] : given
  while (returnable.length > 0 && random.below(4) === 0) {
    const [{ n, at, from, amounts: its }] = returnable.splice(random.below(returnable.length), 1) as [
      ReturnedPermits,
    ]
    // Now and then a caller returns only a part.
    const left = random.below(3) === 0 ? its : its?.map(amount => random.below(amount + 1))
    const part = random.below(3) === 0 ? Math.min(n, measures.length > 0 ? 0 : 1) : n
    returns.push({
      n: part,
      at,
      from,
      amounts: measures.length > 0 ? measures.map((_, place) => left?.[place] ?? 0) : undefined,
    })
  }
  const randomExplain = (): ReservePermits['explain'] =>
    random.below(3) === 0
      ? { n: some(), amounts: amounts(), ahead: random.below(5), amountsAhead: amounts() }
      : undefined
  const shortest = Math.min(...windows.map(({ per }) => per))
  return {
    limiter: 'it',
    // More sessions than a limiter knows at once.
    session: `session ${random.below(random.below(2) === 0 ? 3 : 200)}`,
    windows,
    measures,
    units,
    overdrawn: random.below(4) === 0 ? amounts() : undefined,
    horizon: Math.min(Math.max(2.5 * shortest, 250), 10_000),
    // Mostly the hold of one process, at times that of one farther away.
    hold: [0, 0, 25.5, 25.5, 25.5, 61, 140, 700, 2000][random.below(random.below(3) === 0 ? 9 : 5)]!,
    returns,
    pause: !plain && random.below(8) === 0 ? randomPause(random) : undefined,
    explain: plain
      ? [undefined, { n: 1, ahead: 0, amounts: amounts(), amountsAhead: amounts() }][random.below(2)]
      : randomExplain(),
    tenants: random.below(3) === 0 ? randomTenants(random) : undefined,
  }
}
