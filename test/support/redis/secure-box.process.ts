/** Opens a box from a URL, takes a lock, and says so. */
import { open } from 'signalbox'

await using box = await open(process.argv[2]!)
await box.mutex('key').run(() => console.log('locked'))
