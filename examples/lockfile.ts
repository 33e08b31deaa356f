/**
 * Appends a line to a file that other programs change too, including programs that use proper-lockfile. A killed
 * program does not keep the others waiting.
 *
 *     node lockfile.js notes.txt "the first line"
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { lock } from 'signalbox-lockfile'

const [file, line] = process.argv.slice(2)
if (!file || !line) throw new Error('usage: lockfile.js FILE LINE')

// `realpath: false` allows a file that does not exist yet.
const release = await lock(file, { realpath: false, retries: 10 })
try {
  const text = await readFile(file, 'utf8').catch(() => '')
  await writeFile(`${file}.new`, `${text}${line}\n`)
  await rename(`${file}.new`, file)
  console.log(`${file} has ${text.split('\n').length} lines`)
} finally {
  await release()
}
