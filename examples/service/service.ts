/**
 * A service that runs as several processes: it takes payments, calls a partner that allows 20 calls a second, makes one
 * report per slot, and has one leader. Locks and limits are in Redis, invoices in PostgreSQL.
 *
 * Settings are environment variables: `REDIS_URL`, `DATABASE_URL`, `PARTNER_URL`, and, with defaults, `PORT` and
 * `REPORT_EVERY`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type ErrorRequestHandler } from 'express'
import pg from 'pg'
import { open, type Duration, type Slot } from 'signalbox'
import { problemOf } from 'signalbox/http'
import { limitFetch } from 'signalbox/limits/http'

const { REDIS_URL, DATABASE_URL, PARTNER_URL, PORT = '8080', REPORT_EVERY = '1d' } = process.env
if (!REDIS_URL || !DATABASE_URL || !PARTNER_URL)
  throw new Error('set REDIS_URL, DATABASE_URL and PARTNER_URL')
const charges = new URL('/charges', PARTNER_URL)

const db = new pg.Pool({ connectionString: DATABASE_URL })
// The pool replaces idle connections that a restarting server closes.
db.on('error', error => console.error(error.message))
const box = await open(REDIS_URL, { label: 'payments', wait: '30s' })
const stop = new AbortController()

const partner = box.limiter('partner', { limit: 20, per: '1s', jitter: '100ms' })
// The partner identifies a charge by its key, so a retry is safe.
const callPartner = limitFetch(fetch, partner, { retries: 3, idempotent: true, wait: '5s' })

/** Charges an invoice once, even if several processes receive the request, or receive it repeatedly. */
async function pay(invoice: string): Promise<void> {
  await box.mutex(`invoice:${invoice}`).run(
    async grant => {
      const { rows } = await db.query<{ paid: boolean }>('select paid from invoice where id = $1', [invoice])
      if (!rows[0]) throw new Error(`there is no invoice ${invoice}`)
      if (rows[0].paid) return
      const headers = { 'Idempotency-Key': invoice }
      const charged = await callPartner(charges, {
        method: 'POST',
        headers,
        signal: grant.signal,
      })
      if (!charged.ok) throw new Error(`the partner answered ${charged.status}`)
      // Rejects a holder whose lease has expired, because a later holder has a greater token.
      const token = String(grant.token)
      const sql = 'update invoice set paid = true, fence = $2 where id = $1 and not paid and fence <= $2'
      const { rowCount } = await db.query(sql, [invoice, token])
      if (rowCount === 0) throw new Error('the lease expired, and a later holder wrote the invoice')
    },
    { wait: '2s', lease: '2s' },
  )
}

/**
 * Makes the report of a slot. The slot is the key, because another process makes the report again if the first one
 * dies.
 */
async function report(slot: Slot): Promise<void> {
  const sql =
    'insert into report (slot, paid) select $1, count(*) from invoice where paid on conflict do nothing'
  await db.query(sql, [slot.at])
}

/** Records who leads: one process at a time. After an outage of Redis or PostgreSQL, a process leads again. */
async function lead(): Promise<void> {
  await box.election('clerk').lead(
    async grant => {
      const over = AbortSignal.any([grant.signal, stop.signal])
      while (!over.aborted) {
        await db.query('insert into term (token, pid) values ($1, $2)', [String(grant.token), process.pid])
        await sleep(100, undefined, { signal: over }).catch(() => undefined)
      }
    },
    { again: logError, lease: '2s', signal: stop.signal },
  )
}

function logError(error: unknown): void {
  if (!stop.signal.aborted) console.error(error instanceof Error ? error.message : error)
}

const problems: ErrorRequestHandler = (error, _request, response, next) => {
  logError(error)
  const problem = problemOf(error)
  if (problem) response.writeHead(problem.status, problem.headers).end(JSON.stringify(problem.document))
  else next(error)
}

const app = express()
app.post('/invoices/:id/payment', async (request, response) => {
  await pay(request.params.id)
  response.json({ paid: true })
})
app.get('/alive', (_request, response) => void response.end())
app.get('/ready', async (_request, response) => {
  const isReady = await box.ping().then(
    () => true,
    () => false,
  )
  response.status(isReady ? 200 : 503).json(box.state)
})
app.use(problems)

const server = app.listen(Number(PORT), () => console.log(`listening on ${PORT}`))
box.schedule('report', { every: REPORT_EVERY as Duration }, (_, slot) => report(slot), { onError: logError })
const leading = lead().catch(logError)

async function end(): Promise<void> {
  server.close()
  stop.abort()
  await leading
  await box.close({ drain: '10s' })
  await db.end()
}

process.once('SIGTERM', () => void end())
