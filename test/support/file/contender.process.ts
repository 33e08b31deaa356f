import { closeSync, openSync, writeSync } from 'node:fs'
import { isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import { open } from '../../../src/index.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pause } from '../../../packages/conformance/src/time.js'
import type { JournalEntry } from './journal.js'

/** What a contender is given: as argument of its process, or data of its thread. */
export interface Contest {
  readonly url: string
  readonly journal: string
  readonly keys: readonly string[]
  readonly rounds: number
  /** How long the locks outlive a silent contender, in milliseconds. */
  readonly lease: number
  readonly seed: number
}

/**
 * Takes random 2 to 4 of the keys, in any order, over and over, and writes into the journal, which every contender
 * shares, when it came in and went out.
 */
const contest = (isMainThread ? JSON.parse(process.argv[2]!) : workerData) as Contest
const who = `${process.pid}.${threadId}`
const random = new Random(contest.seed)
const journal = openSync(contest.journal, 'a')

function tell(entry: JournalEntry): void {
  // One write to a file that is open for appending: whole, and in the order in which they happened.
  writeSync(journal, `${JSON.stringify(entry)}\n`)
}

// A thread dies by its own hand: libsql aborts the process when one is terminated in the middle of a statement.
parentPort?.once('message', () => process.exit())
parentPort?.unref()
const box = await open(contest.url)
for (let round = 0; round < contest.rounds; round++) {
  const keys = random.some(contest.keys, 2 + random.below(3))
  const asked = systemClock.now()
  const grant = await box.mutex(...keys).acquire({ lease: contest.lease })
  tell({
    what: 'in',
    who,
    keys,
    token: String(grant.token),
    at: systemClock.now(),
    waited: systemClock.now() - asked,
  })
  await pause(random.below(10))
  grant.assertHeld()
  tell({ what: 'out', who, at: systemClock.now() })
  await grant.release()
}
await box.close()
closeSync(journal)
