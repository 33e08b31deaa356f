-- Returns the time by which everything is decided, in milliseconds since 1970.
create or replace function signalbox.clock() returns float8 language sql volatile as
  $$ select pg_catalog.date_part('epoch'::pg_catalog.text, pg_catalog.clock_timestamp())
       operator(pg_catalog.*) 1000::pg_catalog.float8 $$;

-- Whether certainly no other transaction has locked a row: its xmax is 0, or is the transaction that wrote it or this
-- one. A transaction that locks a row and then updates it leaves its own number there. An xmax can also be the number of a
-- group of transactions; groups are counted by themselves, and none has a number yet that is ahead of their counter.
create or replace function signalbox.is_unbound(writer xid, locker xid) returns boolean language sql volatile as
  $$ select locker operator(pg_catalog.=) 0::pg_catalog.int4
       or (locker operator(pg_catalog.=) writer or locker operator(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.xid)
         and pg_catalog.mxid_age(locker) operator(pg_catalog.<=) 0 $$;

-- Returns until when a waiting request blocks others, in milliseconds: while its own time lasts, or signs cover it.
create or replace function signalbox.blocks_until(session text, number bigint, expires float8, lease float8)
returns float8 language plpgsql strict set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if number <> {number.covered} then return expires; end if;
  -- A role whose rights were granted before there was this table takes a covered waiter for alive.
  if not has_table_privilege('signalbox.signs', 'select') then
    return greatest(expires, signalbox.clock() + least(lease, {time.waiterTtl}));
  end if;
  return greatest(expires, (select s.seen from signalbox.signs s where s.session = session) + least(lease, {time.waiterTtl}));
end $$;

-- Whether a waiting request still blocks others; null without a request.
create or replace function signalbox.blocks(waiter signalbox.request, now float8) returns boolean language sql volatile as
  $$ select case when (waiter).expires operator(pg_catalog.>) now then true
       else signalbox.blocks_until((waiter).session, (waiter).number, (waiter).expires, (waiter).lease)
         operator(pg_catalog.>) now end $$;

-- Maximum number of requests in a row of `data`, at least 3: the holder, and two waiters. The rest of a queue is its tail.
-- A row of this size still fits into a page as it is, so reading it needs no other page.
-- A later revision may only decrease it: rows that are full today would have a tail and not be full.
create or replace function signalbox.row_size() returns int language sql immutable as 'select 8';

-- Whether further requests of a queue belong into its tail. A queue whose row is not full has no tail.
create or replace function signalbox.is_full(queue signalbox.request[]) returns boolean language sql immutable as
  $$ select coalesce(pg_catalog.cardinality(queue), 0) operator(pg_catalog.>=) signalbox.row_size() $$;

-- Returns a number below the places of a tail, and not below those of the requests that have left it. The time of a request
-- is not later than the version of the row then, and that of one from the tail is its place.
create or replace function signalbox.tail_after(queue signalbox.request[]) returns bigint language sql immutable as
  $$ select coalesce(pg_catalog.floor((queue[pg_catalog.cardinality(queue)]).since
       operator(pg_catalog.*) 1000::pg_catalog.float8)::pg_catalog.int8 operator(pg_catalog.-) 2::pg_catalog.int8, 0) $$;

-- Returns all entries of a queue, in the order of `place`.
create or replace function signalbox.entries(row_name text, queue signalbox.request[]) returns table (
  id text, first text, session text, host text, pid int, label text, phase int, expires float8, lease float8,
  number bigint, since float8, claims signalbox.claim[], place bigint
) language sql stable as
  $$ select q.* from pg_catalog.unnest(queue) with ordinality q
     union all
     select (t.request).*, t.place from signalbox.tails t
       where t.name operator(pg_catalog.=) row_name
         and t.place operator(pg_catalog.>) signalbox.tail_after(queue) $$;

-- Returns the entry of a request in a queue, if it has one.
create or replace function signalbox.entry_of(row_name text, queue signalbox.request[], wanted text) returns table (
  id text, first text, session text, host text, pid int, label text, phase int, expires float8, lease float8,
  number bigint, since float8, claims signalbox.claim[]
) language sql stable as
  $$ select q.* from pg_catalog.unnest(queue) q where q.id operator(pg_catalog.=) wanted
     union all
     select (t.request).* from signalbox.tails t
       where t.id operator(pg_catalog.=) wanted and t.name operator(pg_catalog.=) row_name $$;

-- Whether the first requests of a queue, which are in its row, keep back all that are behind them: one of them is
-- exclusive, and none of these two has expired, it and one that waits.
create or replace function signalbox.keeps_back(row_name text, queue signalbox.request[], now float8) returns boolean
language sql volatile as
  $$ select coalesce(pg_catalog.bool_or(r.phase operator(pg_catalog.=) {phase.waiting}) and pg_catalog.bool_or(r.is_exclusive), false)
       from (
         select e.phase, coalesce((
               select c.mode operator(pg_catalog.=) {mode.exclusive} from pg_catalog.unnest(e.claims) c
                 where c.name operator(pg_catalog.=) row_name), true) as is_exclusive,
             case when e.phase operator(pg_catalog.=) {phase.waiting} and e.expires operator(pg_catalog.<=) now
               then signalbox.blocks_until(e.session, e.number, e.expires, e.lease) else e.expires end as until
           from pg_catalog.unnest(queue) q
             left join lateral (
               select d.name, d.queue from signalbox.data d where q.session is null and d.id operator(pg_catalog.=) (
                 select k.id from signalbox.keys k where k.name operator(pg_catalog.=) q.first order by k.id desc limit 1)) home on true
             cross join lateral (
               select q.session, q.phase, q.expires, q.lease, q.number, q.claims where q.session is not null
               union all
               select f.session, f.phase, f.expires, f.lease, f.number, f.claims
                 from signalbox.entry_of(home.name, home.queue, q.id) f where q.session is null) e) r
       where r.until operator(pg_catalog.>) now $$;

-- Whether a request holds its grant. `home` is the row of its first key, which has the request.
create or replace function signalbox.holds(home text, request text, number bigint, now float8) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return exists (
    select from signalbox.data d cross join lateral signalbox.entry_of(home, d.queue, request) q
      where d.id = (select k.id from signalbox.keys k where k.name = home order by k.id desc limit 1)
        and q.phase = {phase.held} and q.number = number and q.expires > now);
end $$;

-- Moves the next requests of a tail into its row, until that is full again. The caller has changed the row.
create or replace function signalbox.refill(row_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  with taken as (
    delete from signalbox.tails t using (
      select n.name, n.place from signalbox.data d cross join lateral (
          select s.name, s.place from signalbox.tails s
            where s.name = d.name and s.place > signalbox.tail_after(d.queue)
            order by s.place limit greatest(signalbox.row_size() - coalesce(cardinality(d.queue), 0), 0)) n
        where d.id = row_id
    ) o where t.name = o.name and t.place = o.place
    returning t.place, t.request
  )
  update signalbox.data d set queue = d.queue || g.requests
    from (select array_agg(t.request order by t.place) as requests from taken t) g
    where d.id = row_id and g.requests is not null;
end $$;

-- Returns the number of a new row. A sequence can repeat numbers after a crash, so the clock is the high part.
create or replace function signalbox.new_id() returns bigint language sql volatile as
  $$ select (pg_catalog.floor(signalbox.clock())::pg_catalog.int8 operator(pg_catalog.*) 1024::pg_catalog.int8)
       operator(pg_catalog.+)
       (pg_catalog.nextval('signalbox.ids'::pg_catalog.regclass) operator(pg_catalog.%) 1024::pg_catalog.int8) $$;

-- Returns the numbers of the rows of these names, in the order in which rows are locked. While a transaction elsewhere
-- keeps dead entries, a name has many in the index: the newest comes first, and the others are not read.
create or replace function signalbox.numbers(wanted text[]) returns table (name text, id bigint) language sql stable as
  $$ select w.name, k.id
       from (select distinct u.name collate pg_catalog."C" as name from pg_catalog.unnest(wanted) u(name)) w,
         lateral (
           select k.id from signalbox.keys k where k.name operator(pg_catalog.=) w.name order by k.id desc limit 1) k
       order by w.name $$;

-- Inserts the rows of these names that are missing. Returns whether this call inserted all of them.
create or replace function signalbox.make_rows(wanted text[], first_due float8) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  made int;
begin
  with fresh as (
    insert into signalbox.keys (name, id, due)
      select w.name, signalbox.new_id(), first_due from unnest(wanted) w(name) order by w.name collate "C"
      on conflict do nothing
      returning id, name
  )
  insert into signalbox.data (id, name, version)
    select f.id, f.name, (signalbox.clock() * 1000)::bigint from fresh f;
  get diagnostics made = row_count;
  return made = cardinality(wanted);
end $$;

-- Gives rows that have changed often new numbers. While a transaction elsewhere is open, the server keeps all old
-- versions of a row, and walks through those with the same number to find the newest. Skips rows that are bound to a
-- transaction.
create or replace function signalbox.move_rows(to_move bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  with free as materialized (
    select d.id, d.name, d.version, d.queue, d.value, signalbox.new_id() as new_id
      from signalbox.data d where d.id = any(to_move) for update skip locked
  ), made as (
    insert into signalbox.data (id, name, version, queue, value)
      select f.new_id, f.name, f.version, f.queue, f.value from free f
  ), named as (
    update signalbox.keys k set id = f.new_id from free f where k.name = f.name and k.id = f.id
  )
  delete from signalbox.data d using free f where d.id = f.id;
end $$;

-- Removes the requests in a row that expired more than a minute ago: their processes have died, and no operation on their
-- keys has removed them. A request is removed from the rows of all its keys or from none, and only if no other transaction
-- has locked one of these rows: a grant that is bound to a transaction stays.
create or replace function signalbox.drop_dead(row_id bigint, now float8) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  dead record;
  ids text[];
begin
  -- Those with the same keys together, because a process may have died with thousands of requests for one key.
  for dead in
    select e.home, e.names, array_agg(e.id) as ids from (
      select r.id, coalesce(r.first, d.name) as home, coalesce(nullif(array(
            select distinct c.name from unnest(coalesce(h.claims, r.claims)) c order by c.name), '{}'::text[]),
            array[d.name]) as names
        from signalbox.data d cross join lateral signalbox.entries(d.name, d.queue) r left join lateral (
          select o.expires, o.session, o.number, o.claims from signalbox.numbers(array[r.first]) n
            join signalbox.data f on f.id = n.id cross join lateral signalbox.entry_of(f.name, f.queue, r.id) o
            where r.session is null) h on true
        where d.id = row_id and signalbox.blocks_until(coalesce(h.session, r.session), coalesce(h.number, r.number),
          coalesce(h.expires, r.expires), {time.waiterTtl}) < now - {time.kept}
    ) e group by e.home, e.names
  loop
    perform from signalbox.numbers(dead.names) n,
      lateral (select from signalbox.data d where d.id = n.id for update skip locked) l
      having count(*) = cardinality(dead.names);
    continue when not found;
    -- Some may have been renewed or granted before the rows were locked.
    ids := array(
      select r.id from signalbox.numbers(array[dead.home]) n join signalbox.data d on d.id = n.id
          cross join lateral signalbox.entries(d.name, d.queue) r
        where r.id = any(dead.ids) and signalbox.blocks_until(r.session, r.number, r.expires, {time.waiterTtl}) < now - {time.kept});
    update signalbox.data d set changes = d.changes + 1, queue = nullif(array(
        select row(u.id, u.first, u.session, u.host, u.pid, u.label, u.phase, u.expires, u.lease, u.number, u.since,
            u.claims)::signalbox.request
          from unnest(d.queue) with ordinality
            u(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place)
          where u.id <> all (ids) order by u.place), '{}'::signalbox.request[])
      from signalbox.numbers(dead.names) n where d.id = n.id;
    delete from signalbox.tails t where t.id = any(ids) and t.name = any(dead.names);
    perform signalbox.refill(n.id) from signalbox.numbers(dead.names) n;
  end loop;
end $$;

-- Deletes what no longer has an effect: rows that were free for a minute, requests for permits of that age, expired IDs
-- and watchers. Every function that inserts rows or records IDs calls this, and it deletes more than they insert. A key
-- that is used again gets a token from the clock. `since` has the times up to which the caller has deleted before, so
-- that the query skips the dead index entries of these. Other rows can have the same time. Returns the new times.
create or replace function signalbox.sweep(max_rows int, since float8[]) returns float8[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now float8 := signalbox.clock();
  old record;
  reached float8[];
  last float8;
begin
  -- Occasionally starts from the beginning, for rows that were committed late, or were locked.
  if random() < 0.01 then since := '{0,0}'; end if;
  reached := since;
  for old in
    select k.name, k.id, k.due from signalbox.keys k where k.due >= since[1] and k.due <= now
      order by k.due limit max_rows for update skip locked
  loop
    perform signalbox.drop_dead(old.id, now);
    delete from signalbox.data d where d.id = (
      select s.id from signalbox.data s
        where s.id = old.id and s.queue is null and s.version < (now - {time.kept}) * 1000
          -- The content of a limiter begins with the time until which it has an effect.
          and case when s.value ~ '^[0-9]+([.][0-9]+)? ' then split_part(s.value, ' ', 1)::float8 < now else s.value is null end
        for update skip locked
    );
    if found then delete from signalbox.keys k where k.name = old.name and k.id = old.id;
    else
      update signalbox.keys k set due = case
          when starts_with(k.name, 'value')
            and exists (select from signalbox.data d where d.id = old.id and d.value is not null) then null
          else now + {time.kept}
        end
        where k.name = old.name and k.id = old.id;
    end if;
    reached[1] := floor(old.due);
  end loop;
  with old as (
    select r.mark from signalbox.recorded r
      where r.until >= to_timestamp(since[2] / 1000) and r.until <= to_timestamp(now / 1000)
      order by r.until limit max_rows for update skip locked
  ), gone as (
    delete from signalbox.recorded r using old o where r.mark = o.mark returning r.until
  )
  select floor(date_part('epoch', max(g.until)) * 1000) into last from gone g;
  reached[2] := coalesce(last, since[2]);
  with old as (
    select w.name, w.session from signalbox.watchers w where w.until <= to_timestamp(now / 1000)
      order by w.until limit max_rows for update skip locked
  )
  delete from signalbox.watchers w using old o where w.name = o.name and w.session = o.session;
  if random() < 0.01 and has_table_privilege('signalbox.signs', 'delete') then
    delete from signalbox.signs s where s.session = any (array(
      select o.session from signalbox.signs o where o.seen < now - 86400000 for update skip locked));
  end if;
  -- A role whose rights were granted before there was this table leaves it to others.
  if has_table_privilege('signalbox.permit_requests', 'delete') then
    with old as (
      select r.name, r.since, r.id from signalbox.permit_requests r where r.since <= now - {time.kept}
        order by r.since limit max_rows for update skip locked
    )
    delete from signalbox.permit_requests r using old o where r.name = o.name and r.since = o.since and r.id = o.id;
  end if;
  return reached;
end $$;
