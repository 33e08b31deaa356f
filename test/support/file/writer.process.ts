import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.js'
import { Database } from '../../../src/engines/file/database.js'
import { loadSqlite } from '../../../src/engines/file/driver.js'
import { Marks } from './marks.js'
import { Starvation } from './starvation.js'

/** Increments its own counter and the common one, in one transaction after another, until it is killed. */
const [folder, slot, writers] = process.argv.slice(2) as [string, string, string]
const writer = Number(slot)
const clock = systemClock

process.on('disconnect', () => process.exit())
const database = await Database.open(await loadSqlite(), join(folder, 'stress.db'), clock, 10_000)
const { connection } = database
const rise = connection.prepare(
  'insert into counters values (?, 1) on conflict (name) do update set value = value + 1',
)
const read = connection.prepare('select value from counters where name = ?')
const write = connection.prepare('update counters set value = ? where name = ?')

const marks = new Marks(join(folder, 'marks'), Number(writers))
const starvation = new Starvation()
const mark = marks.get(writer)
mark.since = 0

for (;;) {
  const since = clock.now()
  const [starved, others] = [starvation.about(since), marks.starvedOthers(writer)]
  mark.since = since
  marks.set(writer, mark)
  await database.run(() => {
    const begun = clock.now()
    const wait = begun - since
    mark.since = 0
    mark.transactions++
    if (wait > mark.longestWait) mark.longestWait = wait
    if (wait > mark.longestLockWait) {
      const unserved = starvation.exact(begun) - starved + (marks.starvedOthers(writer) - others)
      mark.longestLockWait = Math.max(mark.longestLockWait, wait - unserved)
    }
    const starvedBefore = starvation.about(begun)
    const total = read.get('all')![0] as number
    write.run(total + 1, 'all')
    rise.run(`writer ${writer}`)
    const ended = clock.now()
    // The next transaction sees the duration of the commit only as this one's wait for a processor, or not at all.
    if (ended - begun > 1) mark.starvedInside += starvation.exact(ended) - starvedBefore
    marks.set(writer, mark)
  })
}
