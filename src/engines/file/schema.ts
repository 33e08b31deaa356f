/** Number of the database layout. This version can use only this layout. */
export const LAYOUT = 2

/**
 * The tables of layout 2. Changes nothing if they exist.
 *
 * - `queues`: for each key, the first requests that claim only this key, as JSON. The row of the empty key has the
 *   counter. Most lock operations read one row, however many other keys are held. They change one small row, because
 *   each changed page is written to the log. While SQLite searches such a table, it copies whole rows that are longer
 *   than a quarter of a page. So a long row would slow down all other keys.
 * - `tails`: the requests behind them in a long queue.
 * - `requests`, `claims`: the requests for several keys, and their claims. There are few at a time, and every process
 *   keeps all of them in memory: a request for a hundred keys costs one row instead of a hundred. Claims never change,
 *   except by `downgraded`, which makes all of them shared. Measured in processor time: with a row for each claimed
 *   key, a lock of 20 keys cost twice as much, and one of 100 keys 3.7 times as much. With this table for all requests,
 *   a lock of one key cost 1.2 times as much, and 59 times as much while four processes held 1,200 other keys.
 * - `sessions`: the open boxes, and the socket address of each.
 * - `entries`: the values. The table has a row id, which keeps long values out of the index.
 * - `ids`: the IDs of committed changes, and until when each is kept (wall-clock milliseconds, valid after a reboot).
 * - `watches`: the sessions to notify of changes of a store key.
 * - `signs`: the time of the last sign of life of each session, so that a sign writes no rows of its requests.
 * - `limits`: the state of each rate limit, and when it can be deleted. The rows survive a reboot of the machine. Its
 *   clock then starts from zero, so permits granted before look newer than they are, never older.
 * - `sweeps`: where the next sweep of each table for expired rows begins.
 * - `machine`: the boot and the namespaces of the processes that use the database, and the mark, which is above the
 *   counter. The counter may pass a mark only after a higher mark is durable.
 */
export const SCHEMA = `
  create table if not exists queues (key text primary key, queue text not null, has_tail integer not null) without rowid;
  create table if not exists tails (
    key text not null, ticket integer not null, id text not null, entry text not null, primary key (key, ticket)
  ) without rowid;
  create unique index if not exists tails_id on tails (id);
  create table if not exists requests (
    id text primary key, ticket integer not null, session text not null, phase text not null, expires real not null,
    lease real not null, number integer not null, label text, since real not null, downgraded integer not null
  ) without rowid;
  create table if not exists claims (id text not null unique, claims text not null);
  create table if not exists sessions (
    session text primary key, host text not null, pid integer not null, label text, address text not null
  ) without rowid;
  create table if not exists entries (key text not null unique, value text not null, version integer not null);
  create table if not exists ids (key text, id text, until integer not null, primary key (key, id)) without rowid;
  create table if not exists watches (key text, session text, primary key (key, session)) without rowid;
  create table if not exists signs (session text primary key, seen real not null) without rowid;
  create table if not exists limits (name text primary key, state text not null, until integer not null) without rowid;
  create table if not exists sweeps (swept text primary key, place text not null) without rowid;
  create table if not exists machine (boot text not null, namespace text not null, mark integer not null);
`
