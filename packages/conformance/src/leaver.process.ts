/** Does one thing that other processes wait for, and ends at once without closing its box. */
import type { Opener } from './fixture.js'
import { queued } from './time.js'

const [opener, url, deed] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)

switch (deed) {
  case 'put':
    await box.store('s').put('key', 'changed')
    break
  case 'release': {
    const grant = await box.mutex('key').acquire()
    console.log('holding')
    await queued(box, 'key', 1)
    await grant.release()
    break
  }
  default:
    throw new Error(`${String(deed)} is not a known action`)
}
process.exit(0)
