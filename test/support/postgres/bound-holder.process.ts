/**
 * Holds a lock and adds its token to a ledger in a transaction that the grant is bound to. Stops itself at a point:
 * `before` the fence, `after` it, or `never`. Arguments: URL, table, lock, point.
 */
import pg from 'pg'
import { LostError, open } from 'signalbox'

const [url = '', table = '', key = '', point = ''] = process.argv.slice(2)

function stopAt(here: string): void {
  if (here !== point) return
  process.stdout.write('stopped\n')
  process.kill(process.pid, 'SIGSTOP')
}

const client = new pg.Client(url.split('?')[0])
client.on('error', () => undefined)
await client.connect()
await using box = await open(url)
const grant = await box.mutex(key).acquire({ lease: 400 })
try {
  await client.query('begin')
  stopAt('before')
  await grant.fence(client)
  await client.query(`update ${table} set before = last, last = $1`, [grant.token])
  stopAt('after')
  await client.query('commit')
  process.stdout.write('committed\n')
} catch (error) {
  process.stdout.write(error instanceof LostError ? 'lost\n' : `failed: ${String(error)}\n`)
  await client.query('rollback').catch(() => undefined)
}
await grant.release().catch(() => undefined)
await client.end().catch(() => undefined)
