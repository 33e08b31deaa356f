-- The types and tables of Signalbox, in a schema that is called signalbox by default. Each statement can be run again,
-- and then waits for no transaction that uses the tables: `create index if not exists` would.
--
-- The queue of a lock, a value, and the state of a limiter are each a row of `data`; `tails` has the rest of a long
-- queue. `keys` maps a name to the number of its row, so a row that changes often changes no index.
do $$
begin
  if pg_catalog.to_regtype('signalbox.claim') is null then
    -- A claim on one lock. Modes are 1 exclusive, 2 shared, 3 permits. `key` is set only if `name` contains a hash of
    -- it.
    create type signalbox.claim as (name text, mode int, permits int, max_permits int, key text);
    -- A request in the queue of a lock. Phases are 0 waiting, 1 reserved, 2 held; times are in milliseconds. The row of
    -- its first key has all fields, the rows of its other keys only `id` and `first`. A request without claims claims
    -- the key of its row exclusively. Its number is 0 until it is granted; -1 while it waits and is covered by the signs
    -- of its session.
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
  -- When to check next whether the row can be deleted, in milliseconds; null for values, which are kept.
  due float8,
  -- Ordered by number: a lookup reads the newest one of a name, and skips the dead entries of older ones.
  primary key (name, id)
);
-- Names are unique. No query reads this index, because it also has dead entries of older numbers, unordered.
do $$
begin
  if pg_catalog.to_regclass('signalbox.keys_name') is null then
    create unique index keys_name on signalbox.keys ((name || ''));
  end if;
  if pg_catalog.to_regclass('signalbox.keys_due') is null then
    create index keys_due on signalbox.keys (due) where due is not null;
  end if;
end $$;

-- Free space in each page lets the server update a row in place, without a new index entry.
create table if not exists signalbox.data (
  id bigint primary key,
  name text collate "C" not null,
  -- The greatest number granted for the key so far, or the version of the value.
  version bigint not null,
  changes int not null default 0,
  queue signalbox.request[],
  value text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);

-- The rest of a queue that has more requests than `is_full` allows in its row of `data`, in the order of `place`. While
-- there is a rest, the row is full. Whoever inserts, changes or deletes requests here has locked the row, and updates it
-- in the same transaction.
create table if not exists signalbox.tails (
  name text collate "C" not null,
  -- Greater than the version of the row when the request came.
  place bigint not null,
  id text collate "C" not null,
  request signalbox.request not null,
  primary key (name, place)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
do $$
declare
  others text;
begin
  if pg_catalog.to_regclass('signalbox.tails_id') is null then
    create unique index tails_id on signalbox.tails (id, name);
    -- Roles whose rights were granted before there was this table have boxes that are open.
    for others in
      select distinct case a.grantee when 0 then 'public' else a.grantee::pg_catalog.regrole::pg_catalog.text end
        from pg_catalog.pg_class c cross join lateral pg_catalog.aclexplode(c.relacl) a
        where c.oid = 'signalbox.data'::pg_catalog.regclass and a.grantee <> c.relowner and a.privilege_type = 'UPDATE'
    loop
      execute pg_catalog.format('grant select, insert, update, delete on signalbox.tails to %s', others);
    end loop;
  end if;
end $$;

-- When the last sign of life of each session came, in milliseconds. It covers the requests in queues that a sign of the
-- session has named. The row of a session that has ended stays for a day at most.
create table if not exists signalbox.signs (
  session text collate "C" primary key,
  seen float8 not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000);

-- The IDs that commits have recorded, hashed.
create table if not exists signalbox.recorded (
  mark uuid primary key,
  until timestamptz not null
);
do $$
begin
  if pg_catalog.to_regclass('signalbox.recorded_until') is null then
    create index recorded_until on signalbox.recorded (until);
  end if;
end $$;

-- The sessions that watch a value.
create table if not exists signalbox.watchers (
  name text collate "C" not null,
  session text collate "C" not null,
  until timestamptz not null,
  primary key (name, session)
);
do $$
begin
  if pg_catalog.to_regclass('signalbox.watchers_until') is null then
    create index watchers_until on signalbox.watchers (until);
  end if;
end $$;

-- Requests for permits that their boxes have decided by an outdated state. The next box that decides the limiter also
-- decides these, and leaves the answers here. A crash of the server empties the table, and a box without an answer asks
-- again.
create unlogged table if not exists signalbox.permit_requests (
  name text collate "C" not null,
  -- When the box asked, in milliseconds. A limiter's requests are read from a time on, so that older dead ones are not.
  since float8 not null,
  id text collate "C" not null,
  request text not null,
  answer text,
  primary key (name, since, id)
);
do $$
begin
  if pg_catalog.to_regclass('signalbox.permit_requests_since') is null then
    create index permit_requests_since on signalbox.permit_requests (since);
  end if;
end $$;
