/** Locks one location after the other while the tracker runs: `node outsider.process.js URL`. */
import { open } from 'signalbox'
import { now } from '../clock.js'
import { WaitLog } from '../wait-log.js'

/** The busiest stops of the bundled timetable. */
const LOCATIONS = ['70011', '70012', '70261', '70262', '70171', '70172', '70021', '70061', '70062', '70211']
/** Pause between two locks, in milliseconds. It keeps the load of the outsider low. */
const PAUSE = 5

const box = await open(process.argv[2]!, { label: 'outsider' })
const waits = new WaitLog()
const times = new WaitLog()
const stop = new AbortController()
process.once('message', () => stop.abort())
process.once('disconnect', () => process.exit(1))
process.send!('ready')

for (let turn = 0; !stop.signal.aborted; turn++) {
  const since = now()
  const grant = await box.mutex(`trains/LOC_${LOCATIONS[turn % LOCATIONS.length]!}`).acquire()
  waits.add(now() - since)
  times.add(since)
  await grant.release()
  await new Promise(resolve => setTimeout(resolve, PAUSE))
}

await box.close()
process.removeAllListeners('disconnect')
process.send!({ waits: waits.values(), times: times.values() }, () => process.exit(0))
