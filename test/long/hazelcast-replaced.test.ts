import { Client } from 'hazelcast-client'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { Box } from '../../src/box.js'
import { Random } from '../../packages/conformance/src/random.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { SignalboxError } from '../../src/base/errors.js'
import type { Grant } from '../../src/core/grant.js'
import { open } from '../../src/open.js'
import { eventually } from '../support/hazelcast/eventually.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'

const ROUNDS = 9
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
/** Keys that another program also wants. It is parked on the member and mostly comes first. */
const FOREIGN_KEYS = ['e', 'f']
const LEASE = 1500
/** Time without a member after which a client shuts down for good, in milliseconds. */
const PATIENCE = 500
/** Maximum time that any caller waits for a lock, in milliseconds. */
const BOUND = 30_000
/** Maximum delay of a contender's start, and of the reconnection of a client that was cut off, in milliseconds. */
const MAX_DELAY = 2000
const ACCOUNTS = 'accounts'

let server: HazelcastServer

beforeAll(async () => {
  server = await startHazelcast({
    // No server listens there, so clients that are cut off cannot bypass the proxy.
    publicPort: await freePort(),
    // Otherwise the member may free the locks of a client that is cut off before their leases end.
    properties: { 'hazelcast.client.cleanup.period.millis': '60000' },
  })
})
afterAll(() => server.kill())

/** A box with its own proxy to the member. */
class Contender {
  readonly name: string
  readonly #proxy: Proxy
  #box: Box | undefined
  /** Number of its clients that have died. */
  deaths = 0

  private constructor(name: string, proxy: Proxy) {
    this.name = name
    this.#proxy = proxy
  }

  static async start(name: string): Promise<Contender> {
    const contender = new Contender(name, await Proxy.start(server.port))
    contender.#box = await open({
      map: 'replaced',
      hazelcast: {
        clusterName: TEST_CLUSTER,
        network: { clusterMembers: [`127.0.0.1:${contender.#proxy.port}`], smartRouting: false },
        connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: PATIENCE } },
        lifecycleListeners: [(state: string) => void (contender.deaths += Number(state === 'SHUTDOWN'))],
      },
    })
    onTestFinished(async () => {
      await contender.box.close()
      await contender.#proxy[Symbol.asyncDispose]()
    })
    return contender
  }

  get box(): Box {
    return this.#box!
  }

  /** Cuts the box off until its client has died. */
  async cut(): Promise<void> {
    const { deaths } = this
    this.#proxy.target = undefined
    this.#proxy.cut()
    await until(`the client of ${this.name} is dead`, () => this.deaths > deaths)
  }

  /** Restores the connection for the client that replaces the dead one. */
  restore(): void {
    this.#proxy.target = server.port
  }
}

/** The critical sections of the boxes and of the other program. Records their faults. */
class Sections {
  readonly faults: string[] = []
  readonly #last = new Map<string, Grant>()
  readonly #foreign = new Set<string>()
  /** The greatest tokens that a fenced resource has seen, by key. */
  readonly #fence = new Map<string, bigint>()

  /** Records that a box was granted the key. */
  enter(key: string, who: string, grant: Grant): void {
    const before = this.#last.get(key)
    if (before && before.expiresIn() > 0) this.faults.push(`${who} came to ${key} while another box held it`)
    if (before && grant.token <= before.token) this.faults.push(`the token of ${key} fell to ${grant.token}`)
    if (this.#foreign.has(key)) this.faults.push(`${who} came to ${key} while the other program held it`)
    this.#last.set(key, grant)
  }

  /** Records that the other program was granted the key. Call the returned function before it unlocks. */
  enterForeign(key: string): () => void {
    const before = this.#last.get(key)
    if (before && before.expiresIn() > 0)
      this.faults.push(`the other program came to ${key} while a box held it`)
    this.#foreign.add(key)
    return () => this.#foreign.delete(key)
  }

  /** Whether the fenced resource accepts a write. */
  write(key: string, { token }: Grant): boolean {
    if (token < (this.#fence.get(key) ?? 0n)) return false
    this.#fence.set(key, token)
    return true
  }
}

/**
 * Repeats a task while the member is unreachable, so that the task is rejected or its outcome is unknown. Returns its
 * result.
 */
function persisting<T>(task: () => Promise<T>): Promise<T> {
  return eventually(
    task,
    BOUND,
    error => error instanceof SignalboxError && ['UNAVAILABLE', 'INDETERMINATE'].includes(error.code),
  )
}

function deposit(box: Box, name: string, id: string): Promise<unknown> {
  return persisting(() =>
    box.store(ACCOUNTS).transaction([name], one => one.put(name, (one.get<number>(name) ?? 0) + 1), {
      id,
      lease: LEASE,
      wait: BOUND,
    }),
  )
}

test('replaced clients compete with others for the locks of dead ones', async () => {
  const random = new Random(1)
  const contenders = [await Contender.start('one'), await Contender.start('other')]
  const client = await Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: [server.address], smartRouting: false },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
  onTestFinished(() => client.shutdown())
  const map = await client.getMap('replaced')
  const sections = new Sections()
  /** Number of races that each contender won. */
  const firsts = new Map<string, number>()
  const untaken = new Set<string>()
  const came = (key: string, name: string): void => {
    if (untaken.delete(key)) firsts.set(name, (firsts.get(name) ?? 0) + 1)
  }

  const race = async ({ name, box }: Contender, key: string): Promise<void> => {
    await pause(random.below(MAX_DELAY))
    const grant = await persisting(() => box.mutex(key).acquire({ lease: LEASE, wait: BOUND }))
    sections.enter(key, name, grant)
    came(key, name)
    await pause(random.below(4))
    grant.assertHeld()
    expect(sections.write(key, grant)).toBe(true)
    await grant.release()
  }
  const raceForeign = async (key: string): Promise<void> => {
    await pause(random.below(MAX_DELAY))
    expect(await map.tryLock(key, BOUND, BOUND)).toBe(true)
    const leave = sections.enterForeign(key)
    came(key, 'foreign')
    await pause(random.below(4))
    leave()
    await map.unlock(key)
  }

  for (let round = 0; round < ROUNDS; round++) {
    // In turn: the first contender, the second one, both.
    const late = contenders.filter((_, index) => round % 3 === 2 || round % 3 === index)
    const held = KEYS.map((key, index) => ({ key, by: late[index % late.length]! }))
    const grants = await Promise.all(
      held.map(async ({ key, by }) => {
        const grant = await by.box.mutex(key).acquire({ lease: LEASE, wait: BOUND })
        sections.enter(key, by.name, grant)
        return { key, grant }
      }),
    )
    let goOn = (): void => undefined
    const others = new Promise<void>(resolve => (goOn = resolve))
    const commits = late.map(({ name, box }) => {
      let begun = (): void => undefined
      const isBegun = new Promise<void>(resolve => (begun = resolve))
      const commit = box.store(ACCOUNTS).transaction(
        [name],
        async transaction => {
          const before = transaction.get<number>(name) ?? 0
          begun()
          await others
          transaction.put(name, before + 1000)
        },
        { lease: LEASE, wait: BOUND },
      )
      return { name, isBegun, refused: expect(commit).rejects.toMatchObject({ code: 'LOST' }) }
    })
    await Promise.all(commits.map(({ isBegun }) => isBegun))

    await Promise.all(late.map(contender => contender.cut()))
    for (const key of KEYS) untaken.add(key)
    const races = KEYS.flatMap(key => contenders.map(contender => race(contender, key)))
    races.push(...FOREIGN_KEYS.map(raceForeign))
    const deposits = commits.map(({ name }) => deposit(contenders[round % 2]!.box, name, `${name} ${round}`))
    await pause(random.below(MAX_DELAY))
    for (const contender of late) contender.restore()
    await Promise.all([...races, ...deposits])

    for (const { key, grant } of grants) {
      expect(grant.expiresIn() > 0).toBe(false)
      expect(sections.write(key, grant)).toBe(false)
      await expect(grant.release()).rejects.toMatchObject({ code: 'LOST' })
    }
    goOn()
    await Promise.all(commits.map(({ refused }) => refused))
  }

  expect(sections.faults).toEqual([])
  expect([...firsts.keys()].sort()).toEqual(['foreign', 'one', 'other'])
  for (const { name, box, deaths } of contenders) {
    expect(deaths).toBeGreaterThanOrEqual((2 * ROUNDS) / 3)
    expect((await box.store(ACCOUNTS).get(name))!.value).toBe((2 * ROUNDS) / 3)
  }
})
