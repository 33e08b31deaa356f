import { vi } from 'vitest'
import type { Claim } from '../../../src/engine/claim.js'
import { decodeKeyEntry } from '../../../packages/hazelcast/src/entry-text.js'
import type { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { Random } from '../random.js'
import { LEASE, SimulatedBox, type Job, type Story } from './box.js'
import { EntryWorld, wall } from './world.js'

const KEYS = ['a', 'b', 'c']
/** A key that never has a value and that the last box does not lock. */
const LOCK_ONLY = 'aa'

/** Maximum error of a wall clock, in milliseconds. */
const MAX_SKEW = 60_000

/** Maximum time until the session of a process that has ended is removed, in milliseconds. */
const ENDED_WITHIN = 2 * MAX_SKEW + 2 * LEASE + 100_000

/** Maximum time until the last box has all keys after the end of all faults, in milliseconds. */
const SERVED_WITHIN = 60_000

/** Time until a free entry is deleted, in milliseconds. Only IDs with a longer retention keep it. */
const DELETED_WITHIN = 150_000

/** Time until boxes look for the entries that a dead box has left, in milliseconds. */
const LEFT_WITHIN = 250_000

export interface Run {
  readonly wrong: string | undefined
  readonly log: readonly string[]
  readonly outcomes: readonly string[]
}

/** Lets boxes lock and change a few keys at random, and checks the outcome. */
export async function runSets(seed: number, Operations: typeof KeyOperations): Promise<Run> {
  const mocks = [
    vi.spyOn(Date, 'now').mockImplementation(() => wall.now),
    vi.spyOn(Math, 'random').mockReturnValue(0.5),
  ]
  try {
    return await run(new Random(String(seed)), Operations)
  } finally {
    for (const mock of mocks) mock.mockRestore()
  }
}

async function run(random: Random, Operations: typeof KeyOperations): Promise<Run> {
  const isCalm = random.chance(0.2)
  const world = new EntryWorld(random, {
    losses: isCalm ? 0 : random.pick([0, 0.02, 0.08]),
    crashes: isCalm ? 0 : random.pick([0, 0.01, 0.03]),
    pauses: isCalm ? 0 : random.pick([0, 0, 0.02, 0.05]),
    cuts: isCalm ? 0 : random.pick([0, 0, 0.01, 0.03]),
    lostHints: isCalm ? 0 : random.pick([0, 0.3]),
    delays: isCalm ? 0 : random.pick([0, 0.05]),
    skew: random.pick([0, 5000, MAX_SKEW]),
  })
  const story: Story = { holds: [], changes: [], wrong: undefined }
  const boxes = new Map<string, SimulatedBox>()
  const outcomes: string[] = []
  const running = new Set<string>()
  for (let at = 0; at < 2 + random.below(2); at++) {
    const process = world.process(`p${at}`)
    const box = new SimulatedBox(process, world, story, boxes, Operations)
    for (let lane = 0; lane < 1 + random.below(2); lane++) {
      const name = `p${at}.${lane}`
      running.add(name)
      const work = async (): Promise<void> => {
        for (let turn = 0; turn < 1 + random.below(3); turn++) {
          // Free entries are deleted during this rest.
          if (random.chance(0.1)) await box.rest(70_000)
          const label = `${lane}.${turn}`
          const outcome = random.chance(0.15)
            ? await box.write(label, random.pick(KEYS))
            : await box.run(jobOf(random, label, isCalm))
          world.note(`${name} ${outcome}`)
          outcomes.push(outcome)
        }
        running.delete(name)
      }
      void work().catch((error: unknown) => {
        story.wrong ??= `${name} threw ${error instanceof Error ? error.stack : String(error)}`
      })
    }
  }
  const isOver = (): boolean =>
    story.wrong !== undefined ||
    [...running].every(name => world.processes.find(each => name.startsWith(each.name))!.isCrashed)
  const isDone = await world.run(isOver, 400_000)
  if (!isDone) story.wrong ??= `${[...running].join()} has not ended`
  if (isCalm && story.wrong === undefined)
    for (const bad of ['failed', 'timeout', 'gone', 'lost', 'unknown'])
      if (outcomes.includes(bad)) story.wrong ??= `with nothing wrong: ${bad}`
  world.calm()
  // Some processes hold locks that they have forgotten.
  for (const process of world.processes) process.isCrashed = true
  if (story.wrong === undefined) {
    await judgeEnd(world, story, new SimulatedBox(world.process('last'), world, story, boxes, Operations))
  }
  return { wrong: story.wrong, log: world.log, outcomes }
}

function jobOf(random: Random, name: string, isCalm: boolean): Job {
  const keys = random.sample([...KEYS, LOCK_ONLY], random.pick([1, 2, 2, 3]))
  const isShared = random.chance(0.3)
  const claims = keys.map((key): Claim => ({
    key,
    mode: isShared || random.chance(0.1) ? 'shared' : 'exclusive',
  }))
  const isWriter = !keys.includes(LOCK_ONLY)
  const then = random.pick([
    isWriter ? 'commit' : 'renew',
    isWriter ? 'commit' : 'release',
    'release',
    'downgrade',
    'renew',
    isCalm ? 'renew' : 'forget',
  ] as const)
  return { name, claims, wait: isCalm ? 200_000 : random.pick([0, 500, 20_000, 60_000]), then }
}

/**
 * Checks the end of a run: the last box is served, each commit was applied as a whole or not at all, and no entries
 * remain.
 */
async function judgeEnd(world: EntryWorld, story: Story, last: SimulatedBox): Promise<void> {
  let outcome: string | undefined
  const began = world.now
  const claims = KEYS.map((key): Claim => ({ key, mode: 'exclusive' }))
  void last.run({ name: 'end', claims, wait: 2 * SERVED_WITHIN, then: 'commit' }).then(how => (outcome = how))
  await world.run(() => outcome !== undefined || story.wrong !== undefined, 2 * SERVED_WITHIN)
  if (outcome !== 'committed') story.wrong ??= `the last box: ${outcome ?? 'not served'}`
  if (world.now - began > SERVED_WITHIN) story.wrong ??= `the last box waited ${world.now - began} ms`
  await world.run(() => false, ENDED_WITHIN)
  // The first sweep removes the requests of dead boxes. The second one removes the entries that these requests have
  // left.
  for (const pause of [LEFT_WITHIN, DELETED_WITHIN]) {
    let isSwept = false
    void last.operations.sweep().then(() => (isSwept = true))
    if (!(await world.run(() => isSwept, 20_000))) story.wrong ??= 'not swept'
    await world.run(() => false, pause)
  }
  let lists: string[][] | undefined
  void last.values(KEYS).then(found => (lists = found))
  await world.run(() => lists !== undefined, 20_000)
  judgeValues(story, new Map(KEYS.map((key, at) => [key, lists?.[at] ?? []])))
  for (const [key, text] of world.texts) {
    if (key === 'room floor') continue
    if (key.startsWith('room grants/')) {
      if (key !== 'room grants/last') story.wrong ??= `not deleted: ${key}`
      continue
    }
    const { requests, decided } = decodeKeyEntry(key, text).locks
    if (requests.length + decided.length > 0) story.wrong ??= `left at ${key}: ${text}`
    if (!text.includes('"value":') && key !== 'room sets') story.wrong ??= `not deleted at ${key}: ${text}`
  }
}

function judgeValues(story: Story, lists: ReadonlyMap<string, readonly string[]>): void {
  for (const { id, keys, outcome } of story.changes) {
    const counts = keys.map(key => lists.get(key)!.filter(each => each === id).length)
    const least = Math.min(...counts)
    const most = Math.max(...counts)
    if (most > 1) story.wrong ??= `${id} is there twice`
    if (least !== most) story.wrong ??= `${id} is half there: ${keys.join()} ${counts.join()}`
    if (outcome === 'committed' && least === 0) story.wrong ??= `${id} is lost`
    if (outcome === 'refused' && most > 0) story.wrong ??= `${id} was refused, and is there`
  }
}
