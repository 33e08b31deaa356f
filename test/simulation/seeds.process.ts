import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { runSeeds } from './seeds.js'

giveWay()
/**
 * Runs the schedules of the seeds from the first argument to before the second one; fails when one breaks a promise.
 */
const [first, end] = process.argv.slice(2).map(Number)
const broken = await runSeeds(first!, end!)
for (const text of broken) console.error(text)
process.exitCode = broken.length > 0 ? 1 : 0

/** Runs at a low priority, because tests that measure time run at the same time. */
function giveWay(): void {
  setPriority(constants.priority.PRIORITY_LOW)
  try {
    // On Linux the priorities of processes count within their session; this is that of the session, which is its own.
    writeFileSync('/proc/self/autogroup', String(constants.priority.PRIORITY_LOW))
  } catch {
    // There are no such groups here.
  }
}
