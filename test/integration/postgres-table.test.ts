import { afterAll, beforeAll, expect, test } from 'vitest'
import { Random } from '../../packages/conformance/src/random.js'
import type { Claim } from '../../src/engine/claim.js'
import type { Operation, RequestStatus } from '../../src/engine/contract.js'
import { lockRequest } from '../support/lock-request.js'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { compareHistories } from '../support/table-histories.js'
import { SESSIONS, type Session } from '../support/table-world.js'

const WORLDS = 40

let server: PostgresServer
let ports: PostgresTablePorts

beforeAll(async () => {
  server = await startPostgres()
  ports = new PostgresTablePorts(server)
})

afterAll(async () => {
  await ports.close()
  await server.kill()
})

test(
  `the functions of the schema decide as the lock table does, over ${WORLDS} random histories`,
  { timeout: 120_000 },
  async () => {
    await compareHistories(() => ports.take(), 1, WORLDS)
  },
)

test('many operations in one call are decided as each by itself', async () => {
  const [one, other] = [new Side(), new Side()]
  const [together, alone] = [ports.take(), ports.take()]
  const random = new Random(5)
  let now = 1000
  for (let call = 0; call < 200; call++) {
    now += random.below(3) === 0 ? random.below(1500) : 0
    const session = SESSIONS[random.below(SESSIONS.length)]!
    const keys = random.some(['a', 'b', 'c', 'd', 'e', 'f'], 3 + random.below(4))
    const choices = keys.map(key => ({
      key,
      kind: random.below(6),
      wait: random.below(2) * 1000,
      id: `${session}.${call}.${key}`,
    }))
    const both = await together.together(session, one.operations(session, choices), now)
    one.learn(session, choices, both.outcomes)
    const each: unknown[] = []
    for (const operation of other.operations(session, choices))
      each.push(...(await alone.together(session, [operation], now)).outcomes)
    other.learn(session, choices, each)
    const history = JSON.stringify({ call, session, choices })
    expect(both.outcomes.map(plain), history).toEqual(each.map(plain))
  }
  for (const port of [together, alone]) port.end()
})

interface Choice {
  readonly key: string
  readonly kind: number
  readonly wait: number
  readonly id: string
}

/** What the sessions of one side know of their requests. */
class Side {
  /** By session and key: the request, and the number of its grant. */
  readonly #known = new Map<string, { readonly id: string; readonly number: number }>()

  operations(session: Session, choices: readonly Choice[]): Operation[] {
    return choices.map(({ key, kind, wait, id }): Operation => {
      const claims: Claim[] = [{ key, mode: 'exclusive' }]
      const known = this.#known.get(session + key)
      const lease = 1000
      if (!known) return { type: 'enqueue', request: lockRequest(id, claims), lease, wait }
      const request = lockRequest(known.id, claims)
      const { number } = known
      if (number === 0) return { type: 'poll', request, lease, wait: 1000 }
      if (kind < 3) return { type: 'release', request, number }
      return { type: 'renew', request, number, lease }
    })
  }

  learn(session: Session, choices: readonly Choice[], outcomes: readonly unknown[]): void {
    for (const [index, { key, id }] of choices.entries()) {
      const outcome = outcomes[index] as RequestStatus | boolean
      const known = this.#known.get(session + key)
      if (typeof outcome === 'boolean') {
        if (known && (!outcome || choices[index]!.kind < 3)) this.#known.delete(session + key)
      } else if (outcome.state === 'held' || outcome.state === 'queued') {
        const number = outcome.state === 'held' ? outcome.number : 0
        this.#known.set(session + key, { id: known?.id ?? id, number })
      } else this.#known.delete(session + key)
    }
  }
}

function plain(outcome: unknown): unknown {
  if (typeof outcome !== 'object') return outcome
  return { ...outcome, number: undefined, lookAgain: undefined, holder: undefined }
}
