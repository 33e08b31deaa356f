/**
 * Reports that several hosts make: each host keeps the schedule, and one of them makes the report of each slot.
 *
 *     DATABASE_URL=postgres://localhost/shop EVERY=1d node schedule.js
 *
 * Create the table first: `create table report (slot timestamptz primary key, made_by integer not null)`.
 */
import pg from 'pg'
import { open, type Duration, type Grant, type Slot } from 'signalbox'

const { DATABASE_URL = 'postgres://localhost/shop', EVERY = '1d' } = process.env

const db = new pg.Pool({ connectionString: DATABASE_URL })
// A server that restarts closes idle connections; the pool opens others.
db.on('error', error => console.error(error.message))
// Without this listener, the process would end if the server closed the connection of a transaction.
db.on('connect', client => client.on('error', () => undefined))
const box = await open(DATABASE_URL, { label: `reports ${process.pid}`, wait: '30s' })

/** A host whose lease has expired can't write, because the fence binds the transaction to the grant. */
async function report(grant: Grant, slot: Slot): Promise<void> {
  const client = await db.connect()
  try {
    await client.query('begin')
    await grant.fence(client)
    // If a host died before its run was recorded, the row is there already.
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
  // A report of a day on which all hosts were down is made when one is up again.
  catchUp: true,
  onError: (error, slot) => console.error(`the report of ${slot.at.toISOString()}:`, error),
})
console.log('next report:', schedule.next?.at.toISOString())

process.once('SIGTERM', () => {
  // A report in progress is finished.
  void box.close({ drain: '10s' }).then(() => db.end())
})
