import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.js'
import { Database } from '../../../src/engines/file/database.js'
import { loadSqlite } from '../../../src/engines/file/driver.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { builtProgram } from '../built-program.js'
import { Marks } from './marks.js'
import { Standstills } from './standstills.js'

const WRITERS = 4
const KILL_EVERY = 400

/** The outcome of four writers of one database. */
export interface StressResult {
  readonly kills: number
  /** The common counter, and the sum of the writers' own counters. */
  readonly counter: number
  readonly sum: number
  readonly each: readonly number[]
  /** The result of SQLite's integrity check. */
  readonly integrity: string
  /** The longest wait for the database, in milliseconds, including waits that a kill has ended. */
  readonly longestWait: number
  /** The longest wait without the time for which the waiter, or the process that had the database, had no processor. */
  readonly longestLockWait: number
  /** The longest delay of a process that writes to the same disk and takes no lock, in milliseconds. */
  readonly longestStandstill: number
  /** Whether the writers had priority over all other processes of this machine. */
  readonly privileged: boolean
}

/**
 * Runs four processes that write one transaction after another. Every 400 ms kills one, and replaces it at once.
 * @param node path of Node
 * @param duration milliseconds
 */
export async function stress(node: string, folder: string, duration: number): Promise<StressResult> {
  const path = join(folder, 'stress.db')
  const clock = systemClock
  const sqlite = await loadSqlite()
  const database = await Database.open(sqlite, path, clock, 10_000)
  await database.run(() => {
    database.connection.exec(
      `create table counters (name text primary key, value integer not null) without rowid;
       insert into counters values ('all', 0)`,
    )
  })
  await database.close()

  const marks = Marks.create(join(folder, 'marks'), WRITERS)
  const writers: ChildProcess[] = []
  let privileged = true
  const start = (writer: number): void => {
    const child = fork(
      builtProgram('test/support/file/writer.process.js'),
      [folder, String(writer), String(WRITERS)],
      {
        execPath: node,
        execArgv: [],
        // A session of its own, which Linux gives its own share of the processors.
        detached: true,
      },
    )
    privileged = putFirst(child.pid!) && privileged
    writers[writer] = child
  }
  let [kills, cutShort] = [0, 0]
  const kill = async (writer: number): Promise<void> => {
    const child = writers[writer]!
    if (child.exitCode !== null) throw new Error(`writer ${writer} ended with ${child.exitCode}`)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const mark = marks.get(writer)
    if (mark.since > 0) cutShort = Math.max(cutShort, clock.now() - mark.since)
  }

  const standstills = Standstills.start(folder)
  const random = new Random(5)
  for (let writer = 0; writer < WRITERS; writer++) start(writer)
  const end = clock.now() + duration
  while (clock.now() < end) {
    await pause(KILL_EVERY)
    const writer = random.below(WRITERS)
    await kill(writer)
    kills++
    start(writer)
  }
  for (let writer = 0; writer < WRITERS; writer++) await kill(writer)
  standstills.stop()

  const checked = await Database.open(sqlite, path, clock, 10_000)
  const { connection } = checked
  const counters = new Map(
    connection
      .prepare('select name, value from counters')
      .all()
      .map(row => row as [string, number]),
  )
  const integrity = String(connection.prepare('pragma integrity_check').get()![0])
  await checked.close()
  const each = Array.from({ length: WRITERS }, (_, writer) => counters.get(`writer ${writer}`) ?? 0)
  const all = Array.from({ length: WRITERS }, (_, writer) => marks.get(writer))
  marks.close()
  return {
    kills,
    counter: counters.get('all')!,
    sum: each.reduce((sum, count) => sum + count, 0),
    each,
    integrity,
    longestWait: Math.max(cutShort, ...all.map(mark => mark.longestWait)),
    longestLockWait: Math.max(...all.map(mark => mark.longestLockWait)),
    longestStandstill: standstills.longest,
    privileged,
  }
}

/** Gives a session the greatest possible share of the processors. Returns false if that is not allowed. */
function putFirst(session: number): boolean {
  try {
    writeFileSync(`/proc/${session}/autogroup`, '-20')
    return true
  } catch {
    return false
  }
}
