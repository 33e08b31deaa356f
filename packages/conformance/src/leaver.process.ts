/** Does something that other processes wait for, and ends at once without closing its box. */
import type { Opener } from './fixture.js'
import { locks, queued } from './time.js'

const [opener, url, action] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)

switch (action) {
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
  case 'force': {
    const [holder] = (await locks(box, 'key', { exact: true })).flatMap(({ holders }) => holders)
    if (!(await box.forceRelease('key', holder!.token!))) throw new Error('nothing was released')
    break
  }
  default:
    throw new Error(`${String(action)} is not a known action`)
}
process.exit(0)
