/** Holds one key and waits for another until it is killed. */
import type { Duration } from 'signalbox'
import type { Opener } from './fixture.js'

const [opener, url, lease] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)
const options = { lease: lease as Duration }
await box.mutex('held').acquire(options)
const waiting = box.mutex('waited').acquire(options)
console.log('holding')
// Keeps the process alive once it has both; not forever, in case its parent does not kill it.
setTimeout(() => undefined, 60_000)
await waiting
