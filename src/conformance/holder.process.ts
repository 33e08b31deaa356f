/** Holds one key and waits for another until it is killed. */
import type { Duration } from '../duration.js'
import type { Opener } from './fixture.js'

const [opener, url, lease] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)
const options = { lease: lease as Duration }
await box.mutex('held').acquire(options)
const waiting = box.mutex('waited').acquire(options)
console.log('holding')
// Else it would end once it has both. Not for ever, in case nothing is left that kills it.
setTimeout(() => undefined, 60_000)
await waiting
