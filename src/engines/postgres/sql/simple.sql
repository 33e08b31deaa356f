-- Operations on one exclusive claim. The frequent cases are one statement, which changes nothing unless all its
-- preconditions hold. `decide_one` begins with those that involve no other request: acquiring a free key, and a release
-- without waiters. `decide_simple` has the others: queueing, renewal, and a hand-over between two exclusive requests.

-- Sends notices to other sessions. The server commits transactions that notify one at a time, so none that waits for
-- the disk calls this.
create or replace function signalbox.notify_others(notices text, session text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if pg_notification_queue_usage() >= 0.9 then return; end if;
  perform pg_notify('signalbox ' || (e.value ->> 1), (e.value ->> 0) || ' ' || (e.value ->> 2))
    from json_array_elements(('[' || rtrim(notices, ',') || ']')::json) e where e.value ->> 1 <> session;
end $$;

-- Decides one such operation. The answer is null if decide_lock has to decide it. The parameters are those of
-- decide_lock. A row is bound to a transaction only if another transaction has locked it, see is_unbound. `to_move` is a
-- row that should get a new number.
--
-- If the first request holds the key or may claim it, and the first waiter still blocks others, nothing that is behind
-- them matters. So the cost does not depend on the length of the queue, except for the index of its tail.
create or replace function signalbox.decide_simple(
  kind int, session text, host text, pid int, label text, name text, id text, following text, number bigint,
  lease float8, ttl float8, heartbeat float8, now float8,
  out answer text, out notices text, out to_move bigint
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  micros bigint := floor(now * 1000)::bigint;
  changes int;
  row_id bigint;
  -- Where a request that was added to a tail has its place, and the number of requests that are left in the row.
  place bigint;
  size int;
begin
  for attempt in 1 .. 2 loop
    case kind
      when {kind.enqueue} then
        if ttl > 0 then
          update signalbox.data d set
              version = greatest(d.version + 1, micros), changes = d.changes + 1,
              queue = case when signalbox.is_full(d.queue) then d.queue else d.queue || row(
                id, null, session, host, pid, label, {phase.waiting}, now + ttl, lease, 0, now, null)::signalbox.request end
            where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
              and (d.queue[1]).phase > {phase.waiting} and (d.queue[1]).expires > now and (d.queue[1]).claims is null
              and coalesce(signalbox.blocks(d.queue[2], now), cardinality(d.queue) = 1)
              and signalbox.is_unbound(d.xmin, d.xmax)
              and not exists (select from unnest(d.queue) q where q.id = id)
              and (not signalbox.is_full(d.queue)
                or not exists (select from signalbox.tails t where t.id = id and t.name = name))
            returning d.changes, d.id, case when (d.queue[cardinality(d.queue)]).id <> id then d.version end,
              format('["queued",%s,%s%s]',
                cardinality(d.queue) - case when (d.queue[cardinality(d.queue)]).id = id then 1 else 0 end,
                case cardinality(d.queue) when 2 then least((d.queue[1]).expires - now, heartbeat) else heartbeat end::bigint,
                case (d.queue[1]).phase when {phase.held} then format(',%s,%s,%s,%s,%s',
                  to_json((d.queue[1]).session), to_json((d.queue[1]).host), (d.queue[1]).pid,
                  coalesce(to_json((d.queue[1]).label)::text, 'null'), (now - (d.queue[1]).since)::bigint) end)
              into changes, row_id, place, answer;
        else
          select '"busy"' into answer from signalbox.data d
            where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
              and (d.queue[1]).phase > {phase.waiting} and (d.queue[1]).expires > now and (d.queue[1]).claims is null
              and coalesce(signalbox.blocks(d.queue[2], now), cardinality(d.queue) = 1)
              and not exists (select from signalbox.entry_of(name, d.queue, id));
        end if;
      when {kind.release} then
        -- It holds the key, and the first waiter has not expired.
        update signalbox.data d set
            version = greatest(d.version, micros), changes = d.changes + 1,
            queue = row(
                (d.queue[2]).id, null, (d.queue[2]).session, (d.queue[2]).host, (d.queue[2]).pid, (d.queue[2]).label,
                {phase.reserved}, now + {time.claimWindow}, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request
              || d.queue[3:]
          where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
            and (d.queue[1]).id = id and (d.queue[1]).number = number
            and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now and signalbox.is_unbound(d.xmin, d.xmax)
            and (d.queue[2]).phase = {phase.waiting} and (d.queue[2]).claims is null and (d.queue[2]).session is not null
            and signalbox.blocks(d.queue[2], now)
            and coalesce(signalbox.blocks(d.queue[3], now), cardinality(d.queue) = 2)
          returning d.changes, d.id, cardinality(d.queue), '1', format('["wake",%s,%s,%s],',
            to_json((d.queue[1]).session), to_json((d.queue[1]).id), to_json(d.name))
          into changes, row_id, size, answer, notices;
      when {kind.renew} then
        update signalbox.data d set
            version = greatest(d.version, micros), changes = d.changes + 1,
            queue[1].expires = now + lease, queue[1].lease = lease
          where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
            and (d.queue[1]).id = id and (d.queue[1]).number = number
            and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now
          returning '1', d.changes, d.id into answer, changes, row_id;
      when {kind.checkIn} then
        -- The key is reserved for it.
        update signalbox.data d set
            version = greatest(d.version, micros) + 1, changes = d.changes + 1,
            queue[1].phase = {phase.held}, queue[1].expires = now + lease, queue[1].lease = lease,
            queue[1].number = greatest(d.version, micros) + 1
          where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
            and (d.queue[1]).id = id and (d.queue[1]).phase = {phase.reserved} and signalbox.is_unbound(d.xmin, d.xmax)
          returning d.version::text, d.changes, d.id into answer, changes, row_id;
      when {kind.extendOrYield} then
        -- It holds the key, and no other request waits.
        update signalbox.data d set
            version = greatest(d.version, micros) + 1, changes = d.changes + 1,
            queue[1].expires = now + lease, queue[1].lease = lease,
            queue[1].number = greatest(d.version, micros) + 1
          where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
            and cardinality(d.queue) = 1 and (d.queue[1]).id = id and (d.queue[1]).number = number
            and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now and signalbox.is_unbound(d.xmin, d.xmax)
          returning format('["kept",%s]', d.version), d.changes, d.id into answer, changes, row_id;
        if answer is null then
          -- The first waiter has not expired: the key is reserved for it, and the following request is queued.
          update signalbox.data d set
              version = greatest(d.version + 1, micros), changes = d.changes + 1,
              queue = row(
                  (d.queue[2]).id, null, (d.queue[2]).session, (d.queue[2]).host, (d.queue[2]).pid, (d.queue[2]).label,
                  {phase.reserved}, now + {time.claimWindow}, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request
                || d.queue[3:] || case when signalbox.is_full(d.queue) then '{}' else array[row(
                  following, null, session, host, pid, label, {phase.waiting}, now + ttl, lease, 0, now, null)::signalbox.request] end
            where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
              and (d.queue[1]).id = id and (d.queue[1]).number = number
              and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now and signalbox.is_unbound(d.xmin, d.xmax)
              and (d.queue[2]).phase = {phase.waiting} and (d.queue[2]).claims is null and (d.queue[2]).session is not null
              and signalbox.blocks(d.queue[2], now)
              and coalesce(signalbox.blocks(d.queue[3], now), cardinality(d.queue) = 2)
              and not exists (select from signalbox.entry_of(name, d.queue, following))
            returning d.changes, d.id, case when (d.queue[cardinality(d.queue)]).id <> following then d.version end,
              case when (d.queue[cardinality(d.queue)]).id <> following then cardinality(d.queue) end,
              format('["queued",%s,%s]',
                cardinality(d.queue) - case when (d.queue[cardinality(d.queue)]).id = following then 1 else 0 end,
                case when (d.queue[2]).id = following then least({time.claimWindow}, heartbeat) else heartbeat end::bigint),
              format('["wake",%s,%s,%s],',
                to_json((d.queue[1]).session), to_json((d.queue[1]).id), to_json(d.name))
            into changes, row_id, place, size, answer, notices;
        end if;
      when {kind.cancel} then
        -- It waits behind the first waiter.
        update signalbox.data d set
            version = greatest(d.version, micros), changes = d.changes + 1,
            queue = case when exists (select from unnest(d.queue) q where q.id = id) then array(
                select row(q.id, q.first, q.session, q.host, q.pid, q.label, q.phase, q.expires, q.lease, q.number,
                    q.since, q.claims)::signalbox.request
                  from unnest(d.queue) with ordinality
                    q(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place)
                  where q.id <> id order by q.place)
              else d.queue end
          where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
            and (d.queue[1]).phase > {phase.waiting} and (d.queue[1]).expires > now and (d.queue[1]).claims is null
            and (d.queue[1]).id <> id and (d.queue[2]).id <> id and signalbox.blocks(d.queue[2], now)
          returning d.changes, d.id, cardinality(d.queue), '0' into changes, row_id, size, answer;
        if answer is not null then
          delete from signalbox.tails t where t.id = id and t.name = name;
        end if;
    end case;
    exit when answer is not null or attempt = 2;
    -- Another transaction may be changing the row. The update did not wait for it, because that looks like a lock.
    perform from signalbox.data d
      where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1) for no key update;
    exit when not found;
    now := signalbox.clock(); micros := floor(now * 1000)::bigint;
  end loop;
  if place is not null then
    if kind = {kind.extendOrYield} then id := following; end if;
    insert into signalbox.tails as t (name, place, id, request)
      values (name, place, id, row(id, null, session, host, pid, label, {phase.waiting}, now + ttl, lease, 0, place / 1000.0::float8,
        null)::signalbox.request)
      on conflict do nothing;
    if not found then
      -- The request came twice at a time.
      raise exception 'another transaction queues the request' using errcode = 'serialization_failure';
    end if;
  end if;
  -- The row was full, so there may be a tail.
  if size = signalbox.row_size() - 1 then perform signalbox.refill(row_id); end if;
  if changes >= {changes.max} then to_move := row_id; end if;
end $$;

-- Decides an enqueue or a release of one claim that others can hold, too, if all that have a place in the queue hold it.
-- Otherwise the answer is null. The queue is read by one statement: decide_lock takes ten times as long for each entry.
-- The row is locked first, so that the statement finds the tail as the row has it.
create or replace function signalbox.decide_together(
  kind int, session text, host text, pid int, label text, name text, id text, number bigint, lease float8,
  claim signalbox.claim, now float8, out answer text, out to_move bigint
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  micros bigint := floor(now * 1000)::bigint;
  row_id bigint;
  changes int;
  -- Where a request that was added to a tail has its place, and the number of requests that are left in the row.
  place bigint;
  size int;
begin
  select d.id into row_id from signalbox.data d
    where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1) for no key update;
  if kind = {kind.enqueue} then
    update signalbox.data d set
        version = greatest(d.version, micros) + 1, changes = d.changes + 1,
        queue = case when signalbox.is_full(d.queue) then d.queue else d.queue || row(
          id, null, session, host, pid, label, {phase.held}, now + lease, lease, greatest(d.version, micros) + 1, now,
          array[claim])::signalbox.request end
      where d.id = row_id and signalbox.is_unbound(d.xmin, d.xmax)
        and coalesce((
          select bool_and(coalesce(e.id <> id and e.phase = {phase.held} and e.expires > now
                and cardinality(e.claims) = 1 and (e.claims[1]).mode = claim.mode
                and (e.claims[1]).max_permits is not distinct from claim.max_permits, false))
              and (claim.mode = {mode.shared} or sum((e.claims[1]).permits) + claim.permits <= claim.max_permits)
            from signalbox.entries(name, d.queue) e), claim.mode = {mode.shared} or claim.permits <= claim.max_permits)
      returning d.version::text, d.changes, case when (d.queue[cardinality(d.queue)]).id <> id then d.version end
      into answer, changes, place;
    if place is not null then
      insert into signalbox.tails (name, place, id, request)
        values (name, place, id, row(id, null, session, host, pid, label, {phase.held}, now + lease, lease, place,
          place / 1000.0::float8, array[claim])::signalbox.request);
    end if;
  else
    update signalbox.data d set
        version = greatest(d.version, micros), changes = d.changes + 1,
        queue = nullif(array_remove(d.queue, (select q from unnest(d.queue) q where q.id = id)), '{}')
      where d.id = row_id
        and (
          select bool_and(coalesce(e.phase = {phase.held} and e.expires > now, false))
              and bool_or(e.id = id and e.number = number)
            from signalbox.entries(name, d.queue) e)
      returning '1', d.changes, cardinality(d.queue) into answer, changes, size;
    if answer is not null then
      delete from signalbox.tails t where t.id = id and t.name = name;
      if size = signalbox.row_size() - 1 then perform signalbox.refill(row_id); end if;
    end if;
  end if;
  if changes >= {changes.max} then to_move := row_id; end if;
end $$;

-- Executes one such operation like `decide`, and leaves it to `decide` if it is not simple. PL/pgSQL prepares each
-- expression anew in each transaction, so this has few.
create or replace function signalbox.decide_one(
  session text, host text, pid int, label text, row_timeout int, kind int, name text, id text, following text,
  number bigint, lease float8, ttl float8, heartbeat float8, its_label text, swept float8[]
) returns text
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_variable
declare
  answer text := set_config('lock_timeout', row_timeout::text, true) || set_config('synchronous_commit', 'off', true);
  now float8 := signalbox.clock();
  notices text;
  to_move bigint;
  decided record;
begin
  if kind = {kind.enqueue} then
    -- The key is free.
    update signalbox.data d set
        version = greatest(d.version, floor(now * 1000)::bigint) + 1, changes = d.changes + 1,
        queue = array[row(
          id, null, session, host, pid, coalesce(nullif(its_label, ''), nullif(label, '')), {phase.held}, now + lease,
          lease, greatest(d.version, floor(now * 1000)::bigint) + 1, now, null)::signalbox.request]
      where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
        and d.queue is null and signalbox.is_unbound(d.xmin, d.xmax)
      returning d.version::text, case when d.changes >= {changes.max} then d.id end into answer, to_move;
  elsif kind = {kind.release} then
    -- It holds the key, and no other request waits.
    update signalbox.data d set
        version = greatest(d.version, floor(now * 1000)::bigint), changes = d.changes + 1, queue = null
      where d.id = (select k.id from signalbox.keys k where k.name = name order by k.id desc limit 1)
        and (d.queue[1]).id = id and (d.queue[1]).number = number
        and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now and cardinality(d.queue) = 1
      returning '1', case when d.changes >= {changes.max} then d.id end into answer, to_move;
  else
    answer := null;
  end if;
  if answer is not null and to_move is null then return '[[' || answer || '],[],null]'; end if;
  if answer is null then
    decided := signalbox.decide_simple(kind => kind, session => session, host => host, pid => pid,
      label => coalesce(nullif(its_label, ''), nullif(label, '')), name => name, id => id, following => following,
      number => number, lease => lease, ttl => ttl, heartbeat => heartbeat, now => now);
    if decided.answer is null then
      return signalbox.decide(session => session, host => host, pid => pid, label => label, durable => false,
        within => false, row_timeout => row_timeout, waits => false, locked => '{}', kinds => array[kind],
        names => array[name], ids => array[id], nexts => array[following], numbers => array[number],
        leases => array[lease], ttls => array[ttl], heartbeats => array[heartbeat], labels => array[its_label],
        steps => array[0], claim_of => array[1], claim_names => array[name], claim_modes => array[{mode.exclusive}],
        claim_permits => array[0], claim_maxima => array[0], claim_keys => array[''], value_of => '{}',
        value_roles => '{}', value_names => '{}', value_versions => '{}', contents => '{}', mark_of => '{}',
        marks => '{}', swept => swept);
    end if;
    if decided.notices is not null then perform signalbox.notify_others(decided.notices, session); end if;
    answer := decided.answer; notices := decided.notices; to_move := decided.to_move;
  end if;
  if to_move is not null then perform signalbox.move_rows(array[to_move]); end if;
  return format('[[%s],[%s],null]', answer, rtrim(notices, ','));
end $$;
