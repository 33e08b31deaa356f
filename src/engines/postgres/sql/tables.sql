-- The schema of Signalbox, by itself called signalbox. Each statement is harmless where its result is there already.
--
-- Everything is a row of one table: the queue of a lock, a value, the state of a limiter. `keys` is the directory, so
-- that the row that changes often is found by a number, and no index changes with it.
create schema if not exists signalbox;

do $$
begin
  if pg_catalog.to_regtype('signalbox.claim') is null then
    -- A claim on one lock. Modes are 1 exclusive, 2 shared, 3 permits. `key` is there where the name is only a hash.
    create type signalbox.claim as (name text, mode int, permits int, most int, key text);
    -- A request in the queue of a lock. Phases are 0 waiting, 1 reserved, 2 held; times are milliseconds. The row of
    -- its first key has all of it, and the rows of its other keys only `id` and `first`. Without claims, it claims the
    -- key of its row exclusively.
    create type signalbox.request as (
      id text, first text, session text, host text, pid int, label text, phase int, expires float8, lease float8,
      number bigint, since float8, claims signalbox.claim[]
    );
  end if;
end $$;

create sequence if not exists signalbox.ids;

create table if not exists signalbox.keys (
  name text collate "C" not null,
  id bigint not null,
  -- When it is looked at next whether the row can be deleted: milliseconds; null for values, which stay.
  due float8,
  -- The newest number of a name is found without the older ones.
  primary key (name, id)
);
-- Each name is there once. No query looks in this index: it has a name's older numbers as well, in no order.
create unique index if not exists keys_name on signalbox.keys ((name || ''));
create index if not exists keys_due on signalbox.keys (due) where due is not null;

-- Room in each page lets a row be updated in place, without a new entry in an index.
create table if not exists signalbox.data (
  id bigint primary key,
  name text collate "C" not null,
  -- The greatest number that was given for the key so far, or the version of the value.
  version bigint not null,
  changes int not null default 0,
  queue signalbox.request[],
  value text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);

-- Ids of changes that were made, hashed.
create table if not exists signalbox.recorded (
  mark uuid primary key,
  until timestamptz not null
);
create index if not exists recorded_until on signalbox.recorded (until);

-- The sessions that watch a value.
create table if not exists signalbox.watchers (
  name text collate "C" not null,
  session text collate "C" not null,
  until timestamptz not null,
  primary key (name, session)
);
create index if not exists watchers_until on signalbox.watchers (until);
