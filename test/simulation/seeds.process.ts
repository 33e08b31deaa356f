import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { runSeeds } from './seeds.js'

giveWay()
/**
 * Runs the schedules of the seeds from the first argument to below the second one. Fails if a schedule breaks a
 * promise.
 */
const [first, end] = process.argv.slice(2).map(Number)
const broken = await runSeeds(first!, end!)
for (const text of broken) console.error(text)
process.exitCode = broken.length > 0 ? 1 : 0

/** Lowers the priority of this process, because tests that measure time run at the same time. */
function giveWay(): void {
  setPriority(constants.priority.PRIORITY_LOW)
  try {
    // On Linux, the priorities of processes count within their session. This sets the priority of the session, which
    // has no other process.
    writeFileSync('/proc/self/autogroup', String(constants.priority.PRIORITY_LOW))
  } catch {
    // This system has no such groups.
  }
}
