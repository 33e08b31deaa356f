/**
 * Reports for a fleet of hosts: each host keeps the schedule, and one of them makes the report of each slot.
 *
 *     DATABASE_URL=postgres://localhost/shop EVERY=1d node schedule.js
 *
 * Create the table first: `create table report (slot timestamptz primary key, made_by integer not null)`.
 */
import pg from 'pg'
import { open, type Duration, type Grant, type Slot } from 'signalbox'

const { DATABASE_URL = 'postgres://localhost/shop', EVERY = '1d' } = process.env

const db = new pg.Pool({ connectionString: DATABASE_URL })
// The pool replaces idle connections that a restarting server closes.
db.on('error', error => console.error(error.message))
// Without this listener, the process would exit if the server closed the connection of a transaction.
db.on('connect', client => client.on('error', () => undefined))
const box = await open(DATABASE_URL, { label: `reports ${process.pid}`, wait: '30s' })

/**
 * Makes the report of a slot. The fence binds the transaction to the grant, so a host whose lease has expired can't
 * write.
 */
async function report(grant: Grant, slot: Slot): Promise<void> {
  const client = await db.connect()
  try {
    await client.query('begin')
    await grant.fence(client)
    // If a host died before its run was recorded, the row already exists.
    await client.query('insert into report (slot, made_by) values ($1, $2) on conflict do nothing', [
      slot.at,
      process.pid,
    ])
    await client.query('commit')
    console.log(`${process.pid} made the report of ${slot.at.toISOString()}`)
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  } finally {
    client.release()
  }
}

const schedule = box.schedule('report', { every: EVERY as Duration }, report, {
  // If all hosts were down on a day, the first host that is up again makes its report.
  catchUp: true,
  onError: (error, slot) => console.error(`the report of ${slot.at.toISOString()}:`, error),
})
console.log('next report:', schedule.next?.at.toISOString())

process.once('SIGTERM', () => {
  // Finishes a report in progress.
  void box.close({ drain: '10s' }).then(() => db.end())
})
