/** Opens a box from a URL, acquires a lock, and prints `locked`. */
import { open } from 'signalbox'

await using box = await open(process.argv[2]!)
await box.mutex('key').run(() => console.log('locked'))
