/**
 * Moves money between two accounts, each of which is a file in a folder. Several processes may run at the same time, in
 * both directions. A transfer takes all its locks in one step, so transfers cannot deadlock.
 *
 *     node several-locks.js ./accounts anna ben 30
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { open } from 'signalbox'

const [folder, from, to, amount] = process.argv.slice(2)
if (!folder || !from || !to || !amount || !(Number(amount) > 0))
  throw new Error('usage: several-locks.js FOLDER FROM TO AMOUNT')

await mkdir(folder, { recursive: true })
await using box = await open(`file:${join(folder, '.locks')}`)

async function balance(account: string): Promise<number> {
  try {
    return Number(await readFile(join(folder!, account), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}

async function setBalance(account: string, value: number): Promise<void> {
  const path = join(folder!, account)
  // After a crash, the file has either the old content or the new content.
  await writeFile(`${path}.new`, String(value))
  await rename(`${path}.new`, path)
}

await box.mutex(`account:${from}`, `account:${to}`).run(
  async grant => {
    const [left, right] = [await balance(from), await balance(to)]
    if (left < Number(amount)) throw new Error(`${from} has only ${left}`)
    grant.assertHeld() // throws if this process stopped for longer than its lease
    await setBalance(from, left - Number(amount))
    await setBalance(to, right + Number(amount))
    console.log(`${from} has ${left - Number(amount)}, ${to} has ${right + Number(amount)}`)
  },
  { wait: '30s', label: `transfer of ${amount}` },
)
