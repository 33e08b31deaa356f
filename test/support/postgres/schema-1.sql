-- The schema of layout 1, as a box of that time made it.
create schema if not exists signalbox;
create sequence if not exists signalbox.ids;
create table if not exists signalbox.names (
  name text collate "C" primary key,
  id bigint not null unique
);
-- Room in each page lets a row be updated in place, without a new entry in an index.
create table if not exists signalbox.state (
  id bigint primary key,
  version bigint not null,
  changes int not null default 0,
  data text not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);
create table if not exists signalbox.recorded (
  mark uuid primary key,
  until timestamptz not null
);
create index if not exists recorded_until on signalbox.recorded (until);

create or replace function signalbox.version() returns int language sql immutable as 'select 1';

create or replace function signalbox.clock() returns float8 language sql volatile as
  'select extract(epoch from clock_timestamp())::float8 * 1000';

-- The number of a new row. After a crash a sequence gives numbers again, and boxes remember the rows that had them.
create or replace function signalbox.new_id() returns bigint language sql volatile as
  $$ select floor(signalbox.clock())::bigint * 1024 + nextval('signalbox.ids') % 1024 $$;

-- What a transaction of the engine's own goes by: it waits for the disk only with values, and hardly for a row that a
-- transaction elsewhere holds, because all else that the box does waits meanwhile.
create or replace function signalbox.settings(within boolean, durable boolean) returns void
language plpgsql as $$
begin
  if within then return; end if;
  perform set_config('lock_timeout', '100ms', true);
  if not durable then perform set_config('synchronous_commit', 'off', true); end if;
end $$;

-- Reads rows by their names, makes those of them that are missing, and tells which of these marks are recorded.
-- A transaction of the caller's keeps its settings, in each of these functions with the parameter within.
create or replace function signalbox.rows(wanted text[], made text[], marks uuid[], within boolean) returns text
language plpgsql as $$
declare
  missing text[];
begin
  select array_agg(m order by m) into missing
    from unnest(made) m where not exists (select from signalbox.names n where n.name = m);
  if missing is not null then
    perform signalbox.settings(within, false);
    with fresh as (
      insert into signalbox.names (name, id)
        select m, signalbox.new_id() from unnest(missing) m
        on conflict do nothing
        returning id
    )
    insert into signalbox.state (id, version, data) select id, signalbox.clock() * 1000, '' from fresh;
  end if;
  return json_build_object(
    'now', signalbox.clock(),
    'rows', (
      select json_agg(json_build_array(n.name, s.id, s.version, s.data))
        from signalbox.names n join signalbox.state s on s.id = n.id where n.name = any(wanted)
    ),
    'recorded', (
      select json_agg(r.mark) from signalbox.recorded r where r.mark = any(marks) and r.until > clock_timestamp()
    )
  );
end $$;

-- Reads the rows that are not empty, of which the name begins so and the data contain this.
create or replace function signalbox.found(prefix text, part text) returns text
language sql as $$
  select json_build_object(
    'now', signalbox.clock(),
    'rows', (
      select json_agg(json_build_array(n.name, s.id, s.version, s.data))
        from signalbox.names n join signalbox.state s on s.id = n.id
        where n.name >= prefix and n.name < prefix || '~' and s.data <> '' and position(part in s.data) > 0
    )
  )
$$;

-- Compares and sets: writes data with the version next if every row has the expected version, and else tells what
-- the rows are. Data that are null are not written. The decision was made at a time that must not be ahead of this
-- server's clock, and not further behind than the slack. A row of a key that is granted must not be bound to a
-- transaction: an earlier grant's fence has it FOR KEY SHARE, which other changes get along with. Nothing is written if
-- one of the marks that were looked for is recorded: whatever has recorded it under a lock had released the lock in the
-- same step. Marks are recorded; those that must be new make it fail.
create or replace function signalbox.change(
  decided float8, slack float8, durable boolean, within boolean,
  ids bigint[], versions bigint[], datas text[], next bigint, granted bigint[], looked uuid[],
  marks uuid[], untils float8[], must_be_new boolean[]
) returns text
language plpgsql as $$
declare
  now float8 := signalbox.clock();
  is_written boolean := false;
  found_versions bigint[];
  known uuid[];
  free bigint[];
  worn bigint[];
  kept int;
begin
  if decided > now or now - decided > slack then
    return json_build_object('state', 'clock', 'now', now);
  end if;
  perform signalbox.settings(within, durable);
  if cardinality(ids) = 1 and cardinality(looked) = 0 and datas[1] is not null then
    if cardinality(granted) = 0 then
      update signalbox.state set version = next, data = datas[1], changes = changes + 1
        where id = ids[1] and version = versions[1]
        returning case when changes >= 200 then ids else '{}' end into worn;
    else
      update signalbox.state set version = next, data = datas[1], changes = changes + 1
        where id = (
          select s.id from signalbox.state s where s.id = ids[1] and s.version = versions[1] for update skip locked
        )
        returning case when changes >= 200 then ids else '{}' end into worn;
    end if;
    is_written := found;
  end if;
  if not is_written then
    select array_agg(l.version order by l.place) into found_versions from (
      select e.place, s.version
        from unnest(ids) with ordinality e(id, place),
          lateral (select s.version from signalbox.state s where s.id = e.id for no key update) s
    ) l;
    if coalesce(found_versions, '{}') <> versions then return signalbox.stale(ids, versions); end if;
    if cardinality(looked) > 0 then
      select array_agg(r.mark) into known
        from signalbox.recorded r where r.mark = any(looked) and r.until > clock_timestamp();
      if known is not null then
        return json_build_object('state', 'recorded', 'now', now, 'marks', known);
      end if;
    end if;
    if cardinality(granted) > 0 then
      select array_agg(s.id) into free from (
        select s.id from signalbox.state s where s.id = any(granted) for update skip locked
      ) s;
      if not granted <@ coalesce(free, '{}') then
        return json_build_object('state', 'bound', 'now', now, 'free', coalesce(free, '{}'));
      end if;
    end if;
    with written as (
      update signalbox.state s set version = next, data = w.data, changes = changes + 1
        from unnest(ids, datas) w(id, data) where s.id = w.id and w.data is not null
        returning s.id, s.changes
    )
    select array_agg(id) into worn from written where changes >= 200;
  end if;
  if cardinality(marks) > 0 then
    insert into signalbox.recorded as r (mark, until)
      select m.mark, to_timestamp(m.until / 1000) from unnest(marks, untils) m(mark, until)
      on conflict (mark) do update set until = excluded.until
        where r.until <= clock_timestamp() or not must_be_new[array_position(marks, r.mark)];
    get diagnostics kept = row_count;
    if kept < cardinality(marks) then
      raise exception 'an id is recorded already' using errcode = 'serialization_failure';
    end if;
  end if;
  if cardinality(worn) > 0 then
    return json_build_object('state', 'done', 'now', now, 'moved', signalbox.move(worn));
  end if;
  return json_build_object('state', 'done', 'now', now);
end $$;

-- Gives rows new numbers, and tells of each the old and the new one. Leaves those that are bound to a transaction.
create or replace function signalbox.move(worn bigint[]) returns json
language sql as $$
  with free as materialized (
    select s.id, s.version, s.data, signalbox.new_id() as new_id
      from signalbox.state s where s.id = any(worn) for update skip locked
  ), made as (
    insert into signalbox.state (id, version, data) select new_id, version, data from free
  ), named as (
    update signalbox.names n set id = free.new_id from free where n.id = free.id
  ), gone as (
    delete from signalbox.state s using free where s.id = free.id
  )
  select json_agg(json_build_array(id, new_id)) from free
$$;

-- Locks rows until the end of the transaction, and tells which of them are not as expected.
create or replace function signalbox.lock(ids bigint[], versions bigint[]) returns text
language plpgsql as $$
begin
  perform signalbox.settings(false, false);
  -- A process that stands still must not keep the rows locked.
  perform set_config('idle_in_transaction_session_timeout', '2s', true);
  perform from unnest(ids) e(id),
    lateral (select from signalbox.state s where s.id = e.id for no key update) s;
  return signalbox.stale(ids, versions);
end $$;

create or replace function signalbox.stale(ids bigint[], versions bigint[]) returns text
language sql as $$
  select json_build_object(
    'state', 'stale',
    'now', signalbox.clock(),
    'rows', (
      select json_agg(json_build_array(e.id, s.version, s.data))
        from unnest(ids, versions) e(id, version) left join signalbox.state s on s.id = e.id
        where s.version is distinct from e.version
    )
  )
$$;

-- Binds a grant to the transaction that calls this: the rows of its exclusive keys are granted to no other request until the transaction
-- ends. False if it does not hold.
create or replace function signalbox.fence(wanted text[], request text, number bigint) returns boolean
language plpgsql as $$
declare
  bound bigint[];
begin
  for attempt in 1 .. 50 loop
    select array_agg(l.id) into bound from (
      select s.id from signalbox.names n join signalbox.state s on s.id = n.id
        where n.name = any(wanted) order by s.id for key share of s
    ) l;
    -- A row that has moved to another number meanwhile is not bound. One that is bound does not move.
    exit when not exists (
      select from signalbox.names n where n.name = any(wanted) and n.id <> all (coalesce(bound, '{}'))
    );
    if attempt = 50 then return false; end if;
  end loop;
  -- The request is in the row of its first exclusive key.
  return exists (
    select from signalbox.names n join signalbox.state s on s.id = n.id, json_array_elements(s.data::json) place
      where n.name = wanted[1] and s.data <> '' and place->>0 = request and place->>4 = 'held'
        and (place->>7)::bigint = number and (place->>5)::float8 > signalbox.clock()
  );
end $$;

-- Brings hints to the boxes that listen to these channels.
create or replace function signalbox.tell(channels text[], payloads text[]) returns void
language plpgsql as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_notify(t.channel, t.payload) from unnest(channels, payloads) t(channel, payload);
end $$;

-- Deletes what has no effect any more, among so many names from one on. Gives the name to go on from; null at the end.
create or replace function signalbox.sweep(start text, most int, least_age float8) returns text
language plpgsql as $$
declare
  now float8 := signalbox.clock();
  last text;
begin
  perform signalbox.settings(false, false);
  delete from signalbox.recorded where mark in (
    select mark from signalbox.recorded where until <= clock_timestamp() limit most
  );
  select max(n.name) into last from (
    select n.name from signalbox.names n where n.name > start order by n.name limit most
  ) n;
  with gone as (
    delete from signalbox.state where id in (
      select s.id from signalbox.names n join signalbox.state s on s.id = n.id
        where n.name > start and n.name <= last and s.version < (now - least_age) * 1000
          -- A condition on data alone would be tried on rows of all kinds.
          and (
            s.data = '' or case when starts_with(n.name, 'limit') then split_part(s.data, ' ', 1)::float8 < now end
          )
        for update of s skip locked
    )
    returning id
  )
  delete from signalbox.names n using gone where n.id = gone.id;
  return last;
end $$;

-- The holders of each key and its waiters: a line for each key of a request that has not expired.
create or replace view signalbox.locks as
  select
    case json_typeof(c.claim) when 'string' then c.claim #>> '{}' else c.claim ->> 0 end as key,
    r.request ->> 4 as phase,
    case
      when json_typeof(c.claim) = 'string' then 'exclusive'
      when json_array_length(c.claim) = 1 then 'shared'
      else (c.claim ->> 1) || ' of ' || (c.claim ->> 2)
    end as claim,
    r.request ->> 2 as host,
    (r.request ->> 3)::int as pid,
    r.request ->> 1 as session,
    r.request ->> 8 as label,
    nullif((r.request ->> 7)::bigint, 0) * 1024 as token,
    to_timestamp((r.request ->> 9)::float8 / 1000) as since,
    to_timestamp((r.request ->> 5)::float8 / 1000) as expires
  from signalbox.names n
    join signalbox.state s on s.id = n.id
    cross join lateral json_array_elements(
      case when starts_with(n.name, 'lock') and s.data <> '' then s.data::json end
    ) r(request)
    -- A request is in the row of one key. The rows of its other keys have only its id, and no claims.
    cross join lateral json_array_elements(r.request -> 10) c(claim)
  where to_timestamp((r.request ->> 5)::float8 / 1000) > clock_timestamp();

-- The values of stores, as JSON. A key that is too long for an index is shown as its hash, without its store.
create or replace view signalbox.values as
  select
    case when starts_with(n.name, 'value/') then split_part(n.name, '/', 2) end as store,
    regexp_replace(n.name, '^value(/[^/]*/)?', '') as key,
    case when starts_with(n.name, 'value') then (split_part(s.data, E'\n', 1)::json ->> 0)::bigint end as version,
    substr(s.data, position(E'\n' in s.data) + 1) as value
  from signalbox.names n
    join signalbox.state s on s.id = n.id
  where starts_with(n.name, 'value') and s.data <> '' and not s.data ~ '\n$';
