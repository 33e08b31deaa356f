/**
 * A server that takes payments and runs as several processes, with a mutex in Redis for each invoice, and the invoices
 * in PostgreSQL.
 *
 *     create table invoice (id text primary key, paid_by text, fence bigint not null default 0);
 *
 *     REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/app PORT=8080 node web-farm.js
 *     curl -X POST localhost:8080/invoices/42
 */
import { createServer } from 'node:http'
import pg from 'pg'
import { open, TimedOutError } from 'signalbox'

const { REDIS_URL = 'redis://localhost', DATABASE_URL, PORT = '8080' } = process.env

const db = new pg.Pool({ connectionString: DATABASE_URL })
// The pool replaces idle connections that a restarting server closes.
db.on('error', error => console.error(error.message))
const box = await open(REDIS_URL, { label: `payments on ${PORT}` })

/** Charges an invoice if it is not paid. Returns the process that charged it. */
async function pay(id: string): Promise<string> {
  return box.mutex(`invoice:${id}`).run(
    async grant => {
      const { rows } = await db.query<{ paid_by: string | null }>(
        'select paid_by from invoice where id = $1',
        [id],
      )
      if (rows[0] === undefined) throw new Error(`there is no invoice ${id}`)
      if (rows[0].paid_by !== null) return rows[0].paid_by
      // Charge the card here. If a process was stopped for longer than its lease, its token is old, and the update
      // changes nothing.
      const sql = 'update invoice set paid_by = $2, fence = $3 where id = $1 and fence < $3'
      const { rowCount } = await db.query(sql, [id, PORT, String(grant.token)])
      if (rowCount === 0) throw new Error('a later holder wrote the invoice')
      return PORT
    },
    { wait: '5s', lease: '10s' },
  )
}

const server = createServer((request, response) => {
  const id = /^\/invoices\/(\w+)$/.exec(request.url ?? '')?.[1]
  if (request.method !== 'POST' || id === undefined) {
    response.writeHead(404).end()
    return
  }
  pay(id).then(
    paidBy => response.end(`paid by ${paidBy}\n`),
    (error: unknown) => {
      // A timeout means that nothing was done, so the caller can retry.
      response.writeHead(error instanceof TimedOutError ? 503 : 500).end(`${String(error)}\n`)
    },
  )
})
server.listen(Number(PORT), () => console.log(`listening on ${PORT}`))

process.once('SIGTERM', () => {
  server.close(() => void Promise.all([box.close(), db.end()]))
})
