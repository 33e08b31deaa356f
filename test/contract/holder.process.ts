/** Holds one key and waits for another until it is killed. */
import { open, type Duration } from 'signalbox'

const box = await open(process.argv[2]!)
const options = { lease: process.argv[3] as Duration }
await box.mutex('held').acquire(options)
const waiting = box.mutex('waited').acquire(options)
console.log('holding')
await waiting
