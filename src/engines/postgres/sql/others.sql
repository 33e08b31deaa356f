-- Functions that a box calls besides `decide`.

-- Returns those of the waiting requests that must check in now: they are reserved, or gone. Writes nothing.
create or replace function signalbox.reserved_or_gone(names text[], ids text[]) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return (
    with waiting as materialized (
      select q.id from signalbox.numbers(names) n join signalbox.data d on d.id = n.id cross join lateral unnest(d.queue) q
        where q.phase = {phase.waiting}
      union all
      select t.id from signalbox.tails t where t.id = any(ids) and t.name = any(names) and (t.request).phase = {phase.waiting}
    )
    select coalesce(json_agg(i.id), '[]')::text from unnest(ids) i(id)
      where not exists (select from waiting w where w.id = i.id)
  );
end $$;

-- Keeps the waiting requests of a session, by a sign of life. Returns JSON: the requests that have to check in, because
-- they do not wait, nothing ahead blocks them, or a locked row kept them from being covered; the milliseconds until a
-- holder or a reservation expires for which one of them is the first waiter, or null; and the rows to serve. `homes` are
-- the rows of the first keys of `ids`, and `names` all rows of the requests.
-- Its cost grows with `ids` and their rows, and with the tail of a row that does not keep it back. Writes to a queue only
-- to cover a request for the first time.
create or replace function signalbox.alive(session text, ids text[], homes text[], names text[]) returns text
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  replied text := set_config('lock_timeout', '50', true) || set_config('synchronous_commit', 'off', true);
  now float8 := signalbox.clock();
  uncovered record;
begin
  insert into signalbox.signs as s (session, seen) values (session, now)
    on conflict on constraint signs_pkey do update set seen = excluded.seen;
  for uncovered in
    with found as (
      select d.name from signalbox.numbers(homes) n join signalbox.data d on d.id = n.id cross join lateral unnest(d.queue) q
          join unnest(ids) i(id) on i.id = q.id
        where q.phase = {phase.waiting} and q.number = 0
      union
      -- By the index on the ID: by that on the name, the whole tail would be read.
      select t.name from (select * from signalbox.tails t where t.id = any(ids) offset 0) t
        where t.name = any(homes) and (t.request).phase = {phase.waiting} and (t.request).number = 0
    )
    select n.id, n.name from signalbox.numbers(array(select f.name from found f)) n order by n.name collate "C"
  loop
    begin
      update signalbox.data d set changes = d.changes + 1, queue = array(
          select row(q.id, q.first, q.session, q.host, q.pid, q.label, q.phase, q.expires, q.lease,
              case when q.phase = {phase.waiting} and q.number = 0 and q.id = any(ids) then {number.covered} else q.number end, q.since,
              q.claims)::signalbox.request
            from unnest(d.queue) with ordinality
              q(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place)
            order by q.place)
        where d.id = uncovered.id and d.queue is not null;
      if found then
        -- By the index on the ID, too.
        update signalbox.tails t set request.number = {number.covered}
          where t.id = any(ids) and t.name || '' = uncovered.name and (t.request).phase = {phase.waiting} and (t.request).number = 0;
      end if;
    exception when lock_not_available then null;
    end;
  end loop;
  with queues as materialized (
    select d.name, d.queue, signalbox.is_full(d.queue) and not signalbox.keeps_back(d.name, d.queue, now) as is_read_whole
      from signalbox.numbers(names) n join signalbox.data d on d.id = n.id
  ), entries as materialized (
    select w.name, q.id, q.first, q.session, q.phase, q.expires, q.lease, q.number, q.claims, q.place
      from queues w cross join lateral unnest(w.queue) with ordinality
        q(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place)
    union all
    select t.name, t.id, (t.request).first, (t.request).session, (t.request).phase, (t.request).expires,
        (t.request).lease, (t.request).number, (t.request).claims, t.place
      from queues w join signalbox.tails t on t.name = w.name and t.place > signalbox.tail_after(w.queue)
      where w.is_read_whole
    union all
    select t.name, t.id, (t.request).first, (t.request).session, (t.request).phase, (t.request).expires,
        (t.request).lease, (t.request).number, (t.request).claims, t.place
      from (select * from signalbox.tails t where t.id = any(ids) offset 0) t join queues w on w.name = t.name
      where not w.is_read_whole
  ), requests as materialized (
    select e.id, e.session, e.phase, e.lease, e.claims, e.number, case
        when e.phase = {phase.waiting} and e.expires <= now then signalbox.blocks_until(e.session, e.number, e.expires, e.lease)
        else e.expires end as until
      from entries e where e.session is not null
    union all
    -- Those whose entry on their first key is none of these.
    select f.id, f.session, f.phase, f.lease, f.claims, f.number, signalbox.blocks_until(f.session, f.number, f.expires, f.lease)
      from (select distinct e.id, e.first from entries e where e.session is null) o
        join signalbox.data d on d.id = (select k.id from signalbox.keys k where k.name = o.first order by k.id desc limit 1)
        cross join lateral signalbox.entry_of(d.name, d.queue, o.id) f
      where not exists (select from entries e where e.id = o.id and e.session is not null)
  ), queued as (
    select e.name, e.place, r.id, r.phase, r.lease, r.until, i.id is not null as is_named,
        r.session = session as is_own,
        coalesce(cardinality(r.claims), 1) as keys,
        min(e.place) filter (where r.phase = {phase.waiting} and r.until > now) over w as first_waiter,
        min(r.until) filter (where r.phase > {phase.waiting}) over w as held_until,
        coalesce(bool_or(r.until > now and coalesce((select c.mode = {mode.exclusive} from unnest(r.claims) c where c.name = e.name), true))
          filter (where r.phase > {phase.waiting}) over w, false) as is_exclusive,
        count(*) filter (where r.until > now) over a = 0
          or min(m.mode) filter (where r.until > now) over a = m.mode
          and max(m.mode) filter (where r.until > now) over a = m.mode
          and case m.mode when {mode.shared} then true when {mode.permits} then
            sum(m.permits) filter (where r.until > now) over a + m.permits <= m.max_permits else false end as is_free
      from entries e join requests r on r.id = e.id left join unnest(ids) i(id) on i.id = e.id
        left join lateral (
          select coalesce(c.mode, {mode.exclusive}) as mode, c.permits, c.max_permits
            from (select) o left join unnest(r.claims) c on c.name = e.name) m on true
      window w as (partition by e.name),
        a as (partition by e.name order by e.place rows between unbounded preceding and 1 preceding)
  ), found as materialized (
    select q.* from queued q where q.phase > {phase.waiting} and q.until <= now or q.phase = {phase.waiting} and (q.until <= now or q.is_own)
  ), fronts as (
    -- Those that nothing ahead blocks: until this sign, they blocked no others, and were passed over. If serving them does not
    -- help, a transaction is bound to a key, and they have to poll. Not all keys of one that the sign does not name are known.
    select f.id, min(f.name) as name from found f where f.phase = {phase.waiting} and f.until > now and f.is_free and f.is_own
      group by f.id having count(*) = min(f.keys) or not bool_or(f.is_named)
  ), lapsed as (
    select f.name from found f where f.until <= now and (f.phase > {phase.waiting} or not f.is_exclusive
        or f.until + greatest(f.lease - {time.waiterTtl}, 0) <= now and f.place <= coalesce(f.first_waiter, f.place))
    union
    select f.name from fronts f
  )
  select json_build_array(
      (select coalesce(json_agg(i.id order by i.place), '[]') from unnest(ids) with ordinality i(id, place)
        where not exists (select from requests r where r.id = i.id and r.phase = {phase.waiting} and r.number = {number.covered})
          or exists (select from fronts f where f.id = i.id)),
      (select ceil(min(f.held_until) - now)
        from found f where f.phase = {phase.waiting} and f.is_named and f.place <= coalesce(f.first_waiter, f.place)),
      (select coalesce(json_agg(l.name), '[]') from lapsed l))::text
    into replied;
  return replied;
end $$;

-- Forgets the signs of a session that has ended.
create or replace function signalbox.end_signs(session text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  perform set_config('synchronous_commit', 'off', true);
  delete from signalbox.signs s where s.session = session;
end $$;

-- Returns the transaction that keeps a row with `fence`, as a holder; nothing if none does. Such a row can be updated,
-- and not deleted.
create or replace function signalbox.binder(row_id bigint)
returns table (session text, host text, pid int, label text, age bigint)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
  locker xid := (select d.xmax from signalbox.data d where d.id = row_id);
  lockers text[] := array[locker::text];
  is_kept boolean := true;
begin
  if locker is null or locker::text = '0' or not has_table_privilege('signalbox.data', 'update') then return; end if;
  begin
    perform from signalbox.data d where d.id = row_id for no key update;
    if not found then return; end if;
    perform from signalbox.data d where d.id = row_id for update skip locked;
    if found then return; end if;
  exception when lock_not_available then
    -- An operation of another box has it. If a transaction keeps it, too, they are a group.
    is_kept := false; lockers := '{}';
    locker := (select d.xmax from signalbox.data d where d.id = row_id);
  end;
  begin
    lockers := lockers || array(select m.xid::text from pg_get_multixact_members(locker) m where m.mode = 'keysh');
  exception when others then
    -- It is not the number of several transactions.
    null;
  end;
  return query
    select 'transaction ' || l.transactionid::text, coalesce(host(a.client_addr), ''), coalesce(l.pid, 0),
        'an open transaction' || coalesce(' of ' || nullif(a.application_name, ''), ''),
        coalesce((date_part('epoch', clock_timestamp() - a.xact_start) * 1000)::bigint, 0)
      from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'transactionid' and l.granted and l.transactionid::text = any(lockers)
        and l.pid is distinct from pg_backend_pid()
      limit 1;
  if not found and is_kept then return query select 'transaction', '', 0, 'an open transaction', 0::bigint; end if;
end $$;

-- Returns the holders and waiters of keys whose names begin with a prefix, as JSON. Skips damaged entries. If a
-- transaction keeps a key that no grant holds any more, it is a holder.
create or replace function signalbox.inspect(prefix text, exact boolean) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now float8 := signalbox.clock();
begin
  return (
    with meant as materialized (
      select d.id, d.name, d.queue, d.xmax from signalbox.keys k join signalbox.data d on d.id = k.id
        where case when exact then k.name = prefix else starts_with(k.name, prefix) or starts_with(k.name, 'lock#') end
    ), granted as materialized (
      select d.name, c.key, r.session, r.host, r.pid, r.label, coalesce(c.mode, {mode.exclusive}) as mode, c.permits, c.max_permits,
          r.phase, greatest(r.number, 0) as number, greatest(now - r.since, 0)::bigint as age,
          ceil(u.at - now)::bigint as expires_in, q.place
        from meant d
          cross join lateral signalbox.entries(d.name, d.queue) q
          -- The row of a request's first key has the request, and the rows of its other keys refer to it.
          cross join lateral (
            select q.session, q.host, q.pid, q.label, q.phase, q.expires, q.lease, q.number, q.since, q.claims
              where q.session is not null
            union all
            select f.session, f.host, f.pid, f.label, f.phase, f.expires, f.lease, f.number, f.since, f.claims
              from signalbox.data fd cross join lateral signalbox.entry_of(fd.name, fd.queue, q.id) f
              where q.session is null and fd.id = (select k.id from signalbox.keys k where k.name = q.first order by k.id desc limit 1)
          ) r
          left join lateral (select c.* from unnest(r.claims) c where c.name = d.name) c on true
          cross join lateral (select signalbox.blocks_until(r.session, r.number, r.expires, r.lease) as at) u
        where u.at > now
    ), kept as (
      select d.name, null, b.session, b.host, b.pid, b.label, 1, null::int, null::int, 2, 0::bigint, b.age, 0::bigint, 0
        from meant d cross join lateral signalbox.binder(d.id) b
        where d.xmax <> 0 and starts_with(d.name, 'lock/')
          and not exists (select from granted g where g.name = d.name and g.phase = {phase.held})
    )
    select coalesce(json_agg(json_build_array(
        a.name, a.key, a.session, a.host, a.pid, a.label, a.mode, a.permits, a.max_permits, a.phase, a.number, a.age,
        a.expires_in
      ) order by a.name, a.place), '[]')::text
      from (select * from granted union all select * from kept) a
  );
end $$;

-- Returns the names of the rows that have requests of a session.
create or replace function signalbox.rows_of(wanted text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select coalesce(json_agg(d.name), '[]')::text from signalbox.data d
      where d.queue is not null and (exists (select from unnest(d.queue) q where q.session = wanted)
        or d.name in (select t.name from signalbox.tails t where (t.request).session = wanted))
  );
end $$;

-- Binds a grant to the caller's transaction: these rows are granted to no other request until it ends. Returns false if
-- the grant is not held. `home` is the row of its first key, which has the request.
create or replace function signalbox.fence(wanted text[], home text, request text, number bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  bound text[];
begin
  for attempt in 1 .. 50 loop
    select array_agg(d.name) into bound
      from signalbox.numbers(wanted) k,
        lateral (select s.name from signalbox.data s where s.id = k.id for key share) d;
    -- A row that got another number in the meantime is not bound. A bound row keeps its number.
    exit when wanted <@ bound;
    if attempt = 50 then return false; end if;
  end loop;
  return signalbox.holds(home, request, number, signalbox.clock());
end $$;

-- Prepares for a transaction of the caller's that expects and writes values. Inserts the missing rows, which would otherwise make
-- every other box that looks for them wait. Moves rows that have changed often, which that transaction does not.
create or replace function signalbox.prepare_values(wanted text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  to_move bigint[];
begin
  perform signalbox.make_rows(wanted, signalbox.clock() + {time.kept});
  to_move := array(
    select d.id from signalbox.numbers(wanted) k join signalbox.data d on d.id = k.id where d.changes >= {changes.max});
  if to_move <> '{}' then perform signalbox.move_rows(to_move); end if;
end $$;

-- Notifies the boxes that listen on these channels, in a transaction of its own: the server commits transactions that
-- notify one at a time.
create or replace function signalbox.send_notices(channels text[], payloads text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_notify(t.channel, t.payload) from unnest(channels, payloads) t(channel, payload);
end $$;
