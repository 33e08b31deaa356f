/**
 * Keeps a schedule, and writes a line into a journal when a run begins and when it ends. Ends on SIGTERM.
 *
 *     node scheduler.process.js URL JOURNAL PERIOD
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { open, type Slot } from 'signalbox'

const [url = '', journal = '', period = ''] = process.argv.slice(2)
const box = await open(url)

function note(event: string, slot: Slot): void {
  appendFileSync(journal, `${event} ${slot.at.getTime()} ${process.pid} ${Date.now()}\n`)
}

box.schedule(
  'job',
  { every: Number(period) },
  async (grant, slot) => {
    note('begin', slot)
    // Long enough to be killed in the middle.
    await sleep(Number(period) / 10)
    grant.assertHeld()
    note('end', slot)
  },
  { lease: '1s' },
)
process.once('SIGTERM', () => void box.close({ drain: true }))
console.log('ready')
