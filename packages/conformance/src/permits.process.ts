/** Keeps two permits of a limiter with a concurrency in use until it is killed. */
import type { Duration } from 'signalbox'
import type { Opener } from './fixture.js'

const [opener, url, lease] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)
const limiter = box.limiter('api', { limit: 1000, per: '1s', concurrency: 2, lease: lease as Duration })
await limiter.acquire()
await limiter.acquire()
console.log('holding')
// Keeps the process alive; not forever, in case its parent does not kill it.
setTimeout(() => undefined, 60_000)
