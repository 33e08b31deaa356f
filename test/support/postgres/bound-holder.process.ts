/**
 * Holds a lock and adds its token to a ledger in a transaction that the grant is bound to. Stops itself at a point:
 * `before` the fence, or `after` it. Arguments: URL, ledger, key, point, client package.
 */
import pg from 'pg'
import postgres from 'postgres'
import { LostError, open, type SqlTransaction } from 'signalbox'

type Run = (text: string) => Promise<unknown>

const [url = '', ledger = '', key = '', point = '', kind = ''] = process.argv.slice(2)
const place = url.split('?')[0]!

function stopAt(here: string): void {
  if (here !== point) return
  process.stdout.write('stopped\n')
  process.kill(process.pid, 'SIGSTOP')
}

/** Calls `work` in a transaction, with the client that has begun it. */
async function within(work: (client: SqlTransaction, run: Run) => Promise<void>): Promise<void> {
  if (kind === 'postgres') {
    const sql = postgres(place, { max: 1, prepare: false })
    try {
      await sql.begin(transaction => work(transaction, text => transaction.unsafe(text)))
    } finally {
      await sql.end({ timeout: 0 })
    }
    return
  }
  const client = new pg.Client(place)
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query('begin')
    await work(client, text => client.query(text))
    await client.query('commit')
  } finally {
    await client.end()
  }
}

await using box = await open(url)
const grant = await box.mutex(key).acquire({ lease: 2000 })
try {
  await within(async (client, run) => {
    // A transaction begins with its first statement.
    await run('select 1')
    stopAt('before')
    await grant.fence(client)
    await run(`update ${ledger} set before = last, last = ${grant.token}`)
    stopAt('after')
  })
  process.stdout.write('committed\n')
} catch (error) {
  process.stdout.write(error instanceof LostError ? 'lost\n' : `failed: ${String(error)}\n`)
}
await grant.release().catch(() => undefined)
