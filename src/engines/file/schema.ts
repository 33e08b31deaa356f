/** The layout of the database; another number is another layout, which this version neither reads nor writes. */
export const LAYOUT = 2

/**
 * The tables of layout 2.
 *
 * - `queues`: a key with the first requests that claim it alone, as JSON. The empty key holds the counter. Most lock
 *   operations touch one small row, because each page that changes is written to the log, and read one row, however
 *   many other keys are held. On its way through such a table, SQLite copies whole rows that are longer than a quarter
 *   of a page. So a long one would cost all other keys.
 * - `tails`: the requests behind them in a long queue.
 * - `requests`, `claims`: the requests for several keys, and their claims. There are few at a time, and every process
 *   keeps all of them in memory: a hundred keys then cost one row and not a hundred. Claims never change, but for
 *   `downgraded`, which makes them all shared. Measured in processor time: with a row for each claimed key a lock of 20
 *   keys cost twice as much, one of 100 keys 3.7 times. With this table for all requests one key cost 1.2 times as
 *   much, and 59 times where four processes held 1,200 other keys.
 * - `sessions`: the boxes that are open, and the socket by which each is reached.
 * - `entries`: the values. With a row id, which keeps long values out of the index.
 * - `ids`: which changes were committed, until when they are kept (wall clock, milliseconds: it outlives a reboot).
 * - `watches`: which sessions are notified of changes of a store key.
 * - `signs`: when the last sign of life of a session came, so that no row of its requests is written for it; made when
 *   the first one comes.
 * - `limits`: the state of each rate limit, and when it can be deleted; made when the first limiter is used.
 * - `sweeps`: where each table is looked at next for rows whose time is over; made when that is done first.
 * - `machine`: the boot and the namespaces of the processes that use the database, and the mark that the counter must
 *   not pass before it is durable.
 */
export const SCHEMA = `
  create table queues (key text primary key, queue text not null, has_tail integer not null) without rowid;
  create table tails (
    key text not null, ticket integer not null, id text not null, entry text not null, primary key (key, ticket)
  ) without rowid;
  create unique index tails_id on tails (id);
  create table requests (
    id text primary key, ticket integer not null, session text not null, phase text not null, expires real not null,
    lease real not null, number integer not null, label text, since real not null, downgraded integer not null
  ) without rowid;
  create table claims (id text not null unique, claims text not null);
  create table sessions (
    session text primary key, host text not null, pid integer not null, label text, address text not null
  ) without rowid;
  create table entries (key text not null unique, value text not null, version integer not null);
  create table ids (key text, id text, until integer not null, primary key (key, id)) without rowid;
  create table watches (key text, session text, primary key (key, session)) without rowid;
  create table machine (boot text not null, namespace text not null, mark integer not null);
  pragma user_version = ${LAYOUT};
`
