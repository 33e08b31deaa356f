import type { Box } from 'signalbox'
import { assert } from './assert.js'
import { testOn, type Boxes } from './boxes.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { pause, until } from './time.js'
import type { VictimWork } from './victim.process.js'

/**
 * The lease of all grants, and the retention of IDs, in milliseconds. An engine may keep the records of dead processes
 * until the leases of living processes end, for example on a quorum server that the living have asked only once.
 */
const LEASE = 2000
/**
 * Maximum number of records that may stay: the term of the leader, a value, an ID, the state of a limiter, and the
 * records that living boxes use at the moment.
 */
const STAYING = 8
/** Number of callers of each living box at a time, and the pause before the next ones, in milliseconds. */
const CALLERS = 10
const PAUSE = 100
/** Maximum time until the records of many dead processes are removed, in milliseconds. */
const MOST = 90_000
/** Number of short-lived processes, in all and at a time. */
const LIVES = 20
const TOGETHER = 4

/** P9, P12: the engine removes the state of a killed process, although no other process asks for its keys. */
export function deadRemains(fixture: EngineFixture): void {
  describe('P9 what dead processes leave', () => {
    // A process that is killed takes the state of an engine in memory with it.
    const test = testOn(fixture).runIf(fixture.guarantees.scope !== 'thread')

    test('is removed while others use other keys', async boxes => {
      // With a retention, it would take too long for a check that runs beside others.
      if (boxes.place.keeps === undefined)
        await leavesNothing(boxes, 20_000, () => kill(boxes, work(fixture, 10, 10)))
    })
  })
}

/**
 * The same for many keys and many processes. An engine that keeps a record for a minute may check it just before the
 * minute ends, and then again a minute later.
 */
export function manyDeadRemains(fixture: EngineFixture): void {
  describe('what dead processes leave', () => {
    const test = testOn(fixture).runIf(fixture.guarantees.scope !== 'thread')

    test('is removed while others use other keys, also with hundreds of keys', boxes =>
      leavesNothing(boxes, MOST, () => kill(boxes, work(fixture, 300, 30))))

    test('does not pile up when processes live for a moment and close their box or are killed', boxes =>
      leavesNothing(boxes, MOST, async () => {
        let lives = 0
        const live = async (): Promise<void> => {
          while (lives < LIVES) await kill(boxes, work(fixture, 1, 0), lives++ % 2 ? 'SIGKILL' : 'SIGTERM')
        }
        await Promise.all(Array.from({ length: TOGETHER }, live))
      }))
  })
}

function work(fixture: EngineFixture, mutexes: number, others: number): VictimWork {
  return {
    mutexes,
    others,
    lease: LEASE,
    keepsValues: keepsValues(fixture),
    hasLimits: hasLimits(fixture),
  }
}

/** Runs a process until it has done its work, and ends it. */
async function kill(
  boxes: Boxes,
  work: VictimWork,
  signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL',
): Promise<void> {
  const child = boxes.program('victim', JSON.stringify(work))
  await child.printed('holding')
  child.kill(signal)
  await child.end()
}

/**
 * Asserts that the place has no more records than before, after `die` has ended processes and the engine has had time
 * to remove expired records.
 * @param most maximum wait after the time that the engine keeps expired records, in milliseconds
 */
async function leavesNothing(boxes: Boxes, most: number, die: () => Promise<void>): Promise<void> {
  const { place } = boxes
  if (!place.size) return
  const size = async (): Promise<number> => (await place.size?.()) ?? 0
  const pair = await boxes.pair()
  const run = (box: Box, key: string): Promise<void> => box.mutex(key).run(() => pause(1), { lease: LEASE })
  let used = 0
  const use = async (): Promise<void> => {
    // An engine that keeps expired records for a while removes them when boxes use new keys.
    const keys = Array.from({ length: CALLERS }, () => (place.keeps === undefined ? 'key' : `key ${used++}`))
    await Promise.all(pair.flatMap(box => keys.map(key => run(box, key))))
  }
  await Promise.all(pair.map(box => run(box, 'key')))
  const before = await size()
  await use()
  /** Number of records of each new key. They stay until they expire. */
  const ofEach = used === 0 ? 0 : ((await size()) - before) / used
  await die()
  await pause(place.keeps ?? 0)
  let left = Infinity
  await until(
    `no more than ${STAYING} records of dead processes are left`,
    async () => {
      await pause(PAUSE)
      await use()
      left = (await size()) - before - used * ofEach
      return left <= STAYING
    },
    most,
  ).catch(() => assert.atMost(left, STAYING))
}
