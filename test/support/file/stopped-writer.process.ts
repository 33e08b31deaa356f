/** Begins a write transaction, prints `inside`, and stops in its middle: `stopped-writer.process.js DATABASE`. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../../src/base/clock.js'
import { Database } from '../../../src/engines/file/database.js'
import { loadSqlite } from '../../../src/engines/file/driver.js'

const database = await Database.open(await loadSqlite(), process.argv[2]!, systemClock, 10_000)
await database.run(() => {
  writeSync(1, 'inside\n')
  process.kill(process.pid, 'SIGSTOP')
})
await database.close()
