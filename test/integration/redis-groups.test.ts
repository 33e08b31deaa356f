import { afterAll, expect, test } from 'vitest'
import { Random } from '../../packages/conformance/src/random.js'
import { claimSet } from '../../src/core/claims.js'
import type { Claim } from '../../src/engine/claim.js'
import type { LockRequest, Operation, RequestStatus } from '../../src/engine/contract.js'
import { inLanes } from '../support/lanes.js'
import { lockRequest } from '../support/lock-request.js'
import { RedisTablePort, WAYS, type Together } from '../support/redis/table-port.js'
import { startRedis } from '../support/servers/redis.js'
import { SESSIONS, type Session } from '../support/table-world.js'

const HISTORIES = 90
/** Number of calls in a history. */
const CALLS = 60
const KEYS = ['a', '#b'] as const
/** More readers than a history has, so no group is formed. */
const NO_GROUPS = 1_000_000

const server = await startRedis()

afterAll(() => server.stop())

test(
  `readers and permits are decided as a group as they are one by one, over ${HISTORIES} random histories`,
  { timeout: 60_000 },
  async () => {
    const ports = [
      await RedisTablePort.over(server, WAYS.function, 1),
      await RedisTablePort.over(server, WAYS.function, 3),
    ] as const
    const without = await RedisTablePort.over(server, WAYS.function, NO_GROUPS)
    await inLanes(1, HISTORIES, async seed => {
      await compare(seed, new Side(ports[seed % 2]!(`groups${seed}`)), new Side(without(`single${seed}`)))
    })
  },
)

/** Applies a random history to two scripts, and compares them. */
async function compare(seed: number, grouped: Side, single: Side): Promise<void> {
  const random = new Random(seed)
  const history: string[] = []
  const requests: LockRequest[] = []
  let now = 1000
  for (let call = 0; call < CALLS; call++) {
    now += random.below(2) === 0 ? 0 : [1, 30, 400, 1100, 6000][random.below(random.below(4) === 0 ? 5 : 2)]!
    const session = SESSIONS[random.below(SESSIONS.length)]!
    // Within a call, the script keeps what it first read of a group.
    const batch = Array.from({ length: 1 + random.below(4) }, (_, index) =>
      randomOperation(random, `${session}.${call}-${index}`, requests, seed % 4),
    )
    history.push(`${now} ${session} ${JSON.stringify(batch)}`)
    try {
      if (random.below(30) === 0) for (const side of [grouped, single]) await side.port.deleteHeld(KEYS[0])
      const [one, other] = [await single.run(session, batch, now), await grouped.run(session, batch, now)]
      for (const [index, outcome] of one.outcomes.entries()) {
        sameOutcome(outcome, other.outcomes[index])
        if (outcome === true) downgraded(batch[index]!, requests)
      }
      expect(sent(other)).toEqual(sent(one))
      expect(reported(other)).toEqual(reported(one))
    } catch (error) {
      throw new Error(`seed ${seed}:\n${history.join('\n')}\n${(error as Error).message}`, { cause: error })
    }
  }
}

/** Returns a random operation, mostly of readers or holders of permits. @param kind of the history: 0 has both */
function randomOperation(random: Random, id: string, requests: LockRequest[], kind: number): Operation {
  const claim = (key: string): Claim => {
    if (random.below(8) === 0) return { key, mode: 'exclusive' }
    const isPermit = kind === 0 ? random.below(2) === 0 : kind === 1
    if (!isPermit) return { key, mode: 'shared' }
    return { key, mode: 'permits', permits: 1 + random.below(2), max: 5 }
  }
  const lease = [1000, 30_000, 30_000][random.below(3)]!
  const wait = [0, 5000, Infinity, Infinity][random.below(4)]!
  const request = requests.at(-1 - random.below(Math.min(8, Math.max(1, requests.length))))
  const choice = random.below(20)
  if (choice < 8 || !request) {
    const keys = random.below(3) === 0 ? KEYS : [KEYS[random.below(KEYS.length)]!]
    const isSteal = random.below(20) === 0
    const claims = isSteal ? [{ key: keys[0], mode: 'exclusive' as const }] : claimSet(keys.map(claim)).claims
    requests.push(lockRequest(id, claims))
    const enqueue = { type: 'enqueue', request: requests.at(-1)!, lease } as const
    return isSteal ? { ...enqueue, wait: Infinity, steal: true } : { ...enqueue, wait }
  }
  // Each side fills in the number of its own grant.
  const grant = { request, number: 0 }
  if (choice < 11) return { type: 'checkIn', request, lease, wait: wait || 1 }
  if (choice === 11) return { type: 'cancel', request }
  if (choice === 12) return { type: 'renew', ...grant, lease }
  if (choice < 15) return { type: 'release', ...grant }
  if (choice === 15) {
    requests.push(lockRequest(id, request.claims))
    return { type: 'extendOrYield', ...grant, next: requests.at(-1)!, lease, wait: wait || 1 }
  }
  if (choice === 16) return { type: 'downgrade', ...grant }
  if (choice === 17) return { type: 'sweepExpired', keys: KEYS }
  const { session } = request
  return {
    type: 'alive',
    session,
    requests: requests.filter(each => each.session === session).slice(-6),
  }
}

/**
 * Replaces the claims of a downgraded request. A box downgrades only exclusive grants. The script also downgrades
 * permits, and then puts a reader before the group.
 */
function downgraded(operation: Operation, requests: LockRequest[]): void {
  if (operation.type !== 'downgrade') return
  const { request } = operation
  const claims = request.claims.map(({ key }): Claim => ({ key, mode: 'shared' }))
  const place = requests.findIndex(({ id }) => id === request.id)
  requests[place] = lockRequest(request.id, claims)
}

/** A script, with the numbers of its grants. */
class Side {
  readonly #numbers = new Map<string, number>()

  constructor(readonly port: RedisTablePort) {}

  async run(session: Session, batch: readonly Operation[], now: number): Promise<Together> {
    const own = batch.map(operation =>
      'number' in operation && 'request' in operation
        ? { ...operation, number: this.#numbers.get(operation.request.id) ?? 1 }
        : operation,
    )
    const result = await this.port.together(session, own, now)
    for (const outcome of result.outcomes as (Partial<RequestStatus> | undefined)[])
      if (outcome?.state === 'held') this.#numbers.set(outcome.id!, outcome.number!)
    return result
  }
}

/** Compares outcomes. A group ends when the earliest of its members ends, so a script with groups may check earlier. */
function sameOutcome(single: unknown, grouped: unknown): void {
  expect(withoutNumbers(grouped)).toEqual(withoutNumbers(single))
  for (const time of ['checkInAfter', 'next'] as const) {
    const [one, other] = [timeIn(single, time), timeIn(grouped, time)]
    if (one === undefined || one === Infinity) expect(other).toBe(one)
    else expect(other).toBeLessThanOrEqual(one)
  }
}

function timeIn(outcome: unknown, name: 'checkInAfter' | 'next'): number | undefined {
  return (outcome as Partial<Record<typeof name, number>> | undefined)?.[name]
}

function sent({ hints }: Together): unknown[] {
  return hints.map(({ session, type, id }) => `${session} ${type} ${id}`).sort()
}

function reported({ reports }: Together): unknown[] {
  const name = ({ key, id }: Together['reports'][number]): string => `${key} ${id}`
  return [...reports].sort((one, other) => (name(one) < name(other) ? -1 : 1)).map(withoutNumbers)
}

function withoutNumbers(outcome: unknown): unknown {
  if (typeof outcome !== 'object' || outcome === null) return outcome
  const { number: _, order: __, checkInAfter: ___, next: ____, ...rest } = outcome as Record<string, unknown>
  return rest
}
