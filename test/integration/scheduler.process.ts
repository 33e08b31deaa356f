/**
 * Keeps a schedule, and writes a line into a journal when a run begins and when it ends. A run may end when a file
 * contains its slot or a later one. Ends on SIGTERM.
 *
 *     node scheduler.process.js URL JOURNAL ALLOWED PERIOD
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { open, type Slot } from 'signalbox'

const [url = '', journal = '', allowed = '', period = ''] = process.argv.slice(2)
const box = await open(url)

function note(event: string, slot: Slot): void {
  appendFileSync(journal, `${event} ${slot.at.getTime()} ${process.pid} ${Date.now()}\n`)
}

box.schedule(
  'job',
  { every: Number(period) },
  async (grant, slot) => {
    note('begin', slot)
    while (Number(readFileSync(allowed, 'utf8')) < slot.at.getTime()) await sleep(20)
    grant.assertHeld()
    note('end', slot)
  },
  { lease: '1s' },
)
process.once('SIGTERM', () => void box.close({ drain: true }))
console.log('ready')
