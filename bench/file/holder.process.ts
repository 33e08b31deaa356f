/** A process that acquires the lock and keeps it until it is killed: `node holder.process.js LIBRARY FOLDER`. */
import { ourLockfile, patientLockfile } from '../lockers/proper-lockfile.js'

const [name, folder] = process.argv.slice(2) as [string, string]
const library = [ourLockfile, patientLockfile].find(one => one.name === name)!
const locker = await library.open(folder, ['key'])
await locker.lock('key')
process.send!('held')
// Nothing else keeps the process alive.
setInterval(() => undefined, 60_000)
