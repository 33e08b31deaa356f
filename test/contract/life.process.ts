/**
 * One life of a process: takes a lock, prints its token, and reads and writes a value. The second argument shifts the
 * wall clock by a number of milliseconds.
 */
const [url, shift] = process.argv.slice(2)
const now = Date.now
Date.now = () => now() + Number(shift)

// Loads the package after changing the clock, because an engine reads the wall clock when it starts.
const { open } = await import('signalbox')
const box = await open(url!)
const grant = await box.mutex('key').acquire()
const store = box.store('s')
const before = (await store.get<string>('key'))?.value
await store.put('key', 'of an earlier life')
await box.close()
console.log(JSON.stringify({ token: String(grant.token), before }))
