/**
 * Keeps notes in a file that several processes read and write. The locks have the API of `navigator.locks` in browsers:
 * readers share a lock, and a writer excludes all others.
 *
 *     node web-locks.js ./notes add 'buy milk'
 *     node web-locks.js ./notes list
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { open } from 'signalbox'
import { lockManager } from 'signalbox/web-locks'

const [folder, command, text] = process.argv.slice(2)
if (!folder || !(command === 'list' || (command === 'add' && text)))
  throw new Error('usage: web-locks.js FOLDER list | add TEXT')

await mkdir(folder, { recursive: true })
await using box = await open(`file:${join(folder, '.locks')}`)
const locks = lockManager(box)
const path = join(folder, 'notes.json')

async function notes(): Promise<string[]> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as string[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

if (command === 'list') {
  const all = await locks.request('notes', { mode: 'shared' }, () => notes())
  for (const note of all) console.log(note)
} else {
  const signal = AbortSignal.timeout(10_000)
  const count = await locks.request('notes', { signal }, async lock => {
    const all = [...(await notes()), text!]
    lock.signal.throwIfAborted() // throws if the lock was lost meanwhile
    await writeFile(`${path}.new`, JSON.stringify(all))
    await rename(`${path}.new`, path)
    return all.length
  })
  console.log(`${count} notes`)
}
