/** Holds one key and waits for another until it is killed. */
import { open } from 'signalbox'

const box = await open(process.argv[2]!)
await box.mutex('held').acquire()
const waiting = box.mutex('waited').acquire()
console.log('holding')
await waiting
