import { closeSync, openSync, writeSync } from 'node:fs'
import { isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import { open } from '../../../src/index.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pause } from '../../../packages/conformance/src/time.js'
import type { JournalEntry } from './journal.js'

/** The task of a contender: the argument of its process, or the data of its thread. */
export interface Contest {
  readonly url: string
  readonly journal: string
  readonly keys: readonly string[]
  readonly rounds: number
  /** The lease of the locks, in milliseconds. */
  readonly lease: number
  readonly seed: number
}

/**
 * Acquires 2 to 4 random keys, in any order, over and over. Records in the journal, which all contenders share, when it
 * entered and left.
 */
const contest = (isMainThread ? JSON.parse(process.argv[2]!) : workerData) as Contest
const who = `${process.pid}.${threadId}`
const random = new Random(contest.seed)
const journal = openSync(contest.journal, 'a')

function record(entry: JournalEntry): void {
  // One write to a file that is open for appending stays whole, and keeps its place in the order of events.
  writeSync(journal, `${JSON.stringify(entry)}\n`)
}

// A thread exits by itself, because libsql aborts the process when one is terminated in the middle of a statement.
parentPort?.once('message', () => process.exit())
parentPort?.unref()
const box = await open(contest.url)
for (let round = 0; round < contest.rounds; round++) {
  const keys = random.some(contest.keys, 2 + random.below(3))
  const asked = systemClock.now()
  const grant = await box.mutex(...keys).acquire({ lease: contest.lease })
  record({
    what: 'in',
    who,
    keys,
    token: String(grant.token),
    at: systemClock.now(),
    waited: systemClock.now() - asked,
  })
  await pause(random.below(10))
  grant.assertHeld()
  record({ what: 'out', who, at: systemClock.now() })
  await grant.release()
}
await box.close()
closeSync(journal)
