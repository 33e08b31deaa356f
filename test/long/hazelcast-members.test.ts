import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { SignalboxError } from '../../src/errors.js'
import type { Grant } from '../../src/locks/grant.js'
import { open } from '../../src/open.js'
import { pause } from '../../src/conformance/time.js'
import { startHazelcastCluster, TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'
import { faultless, runTracker } from '../trains/run-tracker.js'

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const BOXES = 3
/** Tasks of each box that lock, and tasks that count. */
const TASKS = 6
/** What is left of a client's calls that were cut off by the end of a member ends with it: milliseconds. */
const LEASE = 3000

let members: HazelcastServer[]

beforeAll(async () => {
  members = await startHazelcastCluster(3)
})

afterAll(async () => {
  for (const member of members) await member.kill()
})

/** Kills one member after the other and lets each join again once the others have copies of everything. */
async function killEach(): Promise<void> {
  for (const member of members) {
    const others = members.filter(one => one !== member)
    await pause(1000)
    await member.kill()
    await pause(2000)
    await member.rejoin(others)
    await untilSafe()
  }
}

async function untilSafe(): Promise<void> {
  for (const member of members) while (!(await member.isSafe())) await pause(50)
}

/** What is refused while a member is being missed; anything else is a fault. */
function checkRefusal(error: unknown): void {
  if (
    error instanceof SignalboxError &&
    ['UNAVAILABLE', 'INDETERMINATE', 'LOST', 'TIMED_OUT'].includes(error.code)
  )
    return
  throw error
}

test('a member killed under load, each in turn: no two inside, no count lost, no lock left', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=killed`
  const boxes = await Promise.all(Array.from({ length: BOXES }, () => open(url)))
  const over = new AbortController()
  const inside = new Map<string, Grant>()
  const tokens = new Map<string, bigint>()
  const overlaps: string[] = []
  const counted = new Map(KEYS.map(key => [key, 0]))
  let sections = 0

  const section = (key: string, grant: Grant): void => {
    const before = inside.get(key)
    if (before && holds(before)) overlaps.push(`${key}: ${before.token} and ${grant.token}`)
    inside.set(key, grant)
    if (grant.token <= (tokens.get(key) ?? 0n))
      overlaps.push(`${key}: ${grant.token} after ${String(tokens.get(key))}`)
    tokens.set(key, grant.token)
    sections++
  }
  const lock = async (box: Box, index: number): Promise<void> => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const keys = turn % 3 === 0 ? [KEYS[turn % 6]!, KEYS[(turn + 1) % 6]!] : [KEYS[turn % 6]!]
      try {
        await box.mutex(...keys).run(
          async grant => {
            for (const key of keys) section(key, grant)
            await pause(1)
            for (const key of keys) if (inside.get(key) === grant) inside.delete(key)
          },
          { lease: LEASE, wait: 10_000 },
        )
      } catch (error) {
        checkRefusal(error)
      }
    }
  }
  const count = async (box: Box, index: number): Promise<void> => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const key = KEYS[turn % 6]!
      const id = randomUUID()
      for (let isDone = false; !isDone;) {
        try {
          await box
            .store('counts')
            .transaction(
              [key],
              transaction => transaction.put(key, (transaction.get<number>(key) ?? 0) + 1),
              { id, lease: LEASE, wait: 10_000 },
            )
          isDone = true
        } catch (error) {
          checkRefusal(error)
        }
      }
      counted.set(key, counted.get(key)! + 1)
    }
  }
  const tasks = boxes.flatMap(box =>
    Array.from({ length: TASKS }, (_, index) => [lock(box, index), count(box, index)]).flat(),
  )
  await Promise.race([killEach(), Promise.all(tasks)])
  await pause(500)
  over.abort()
  await Promise.all(tasks)
  expect(overlaps).toEqual([])
  for (const key of KEYS) {
    expect((await boxes[0]!.store('counts').get(key))!.value, key).toBe(counted.get(key))
    for (const box of boxes) await box.mutex(key).run(() => undefined, { wait: 2 * LEASE })
  }
  expect(sections).toBeGreaterThan(100)
  for (const box of boxes) await box.close()
})

test('trains on three members, one of which is killed and joins again: nothing lost, counters right', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=trains`
  let isRunning = true
  const run = runTracker(folder, url, ['--processes', '3', '--days', '5', '--kill', '3']).finally(
    () => (isRunning = false),
  )
  run.catch(() => undefined)
  const [first, ...others] = members
  await pause(1500)
  expect(isRunning).toBe(true)
  await first!.kill()
  await pause(2000)
  await first!.rejoin(others)
  const { status, output, report } = await run
  expect(status, output).toBe(0)
  expect(report).toMatchObject(faultless(5))
  expect(report.kills).toHaveLength(3)
  rmSync(folder, { recursive: true, force: true })
})

test('a box that is opened while a member ends is open in time', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=opened`
  for (let round = 0; round < 6; round++) {
    const member = members[round % members.length]!
    const opening = Promise.all(
      Array.from({ length: 5 }, async (_, index) => {
        await pause(index * 80)
        const box = await open(url)
        await box.close()
      }),
    )
    opening.catch(() => undefined)
    await pause(60 * round)
    await member.kill()
    await opening
    await member.rejoin(members.filter(one => one !== member))
    await untilSafe()
  }
})

function holds(grant: Grant): boolean {
  try {
    grant.assertHeld()
    return true
  } catch {
    return false
  }
}
