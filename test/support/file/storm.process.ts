/**
 * Many tasks that all want one key and wait for it for a moment only, until standard input ends:
 * `storm.process.js FOLDER NAME TASKS WAIT`. Each wants a key of its own as well, so that each has a place of its own
 * in the queue. Prints `begun`, and at its end a StormReport.
 */
import { systemClock } from '../../../src/base/clock.js'
import { open, TimedOutError } from '../../../src/index.js'

/** The outcome of the tasks. */
export interface StormReport {
  /** Number of times that tasks had the key, and that they gave up. */
  readonly served: number
  readonly gaveUp: number
  /** Maximum delay between the end of a task's wait and its rejection, in milliseconds. */
  readonly latest: number
}

const [folder = '', name = '', tasks = '', wait = ''] = process.argv.slice(2)

const box = await open(`file:${folder}`)
const report = { served: 0, gaveUp: 0, latest: 0 }
process.stdin.resume()

async function task(own: string): Promise<void> {
  const lock = box.mutex('hot', own)
  while (!process.stdin.readableEnded) {
    const due = systemClock.now() + Number(wait)
    try {
      const grant = await lock.acquire({ wait: Number(wait) })
      report.served++
      await grant.release()
    } catch (error) {
      if (!(error instanceof TimedOutError)) throw error
      report.gaveUp++
      report.latest = Math.max(report.latest, systemClock.now() - due)
    }
  }
}

process.stdout.write('begun\n')
await Promise.all(Array.from({ length: Number(tasks) }, (_, index) => task(`${name} ${index}`)))
await box.close()
process.stdout.write(JSON.stringify(report satisfies StormReport))
