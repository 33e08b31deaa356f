-- Executes operations, and returns a JSON text: the reply to each, notices for sessions, and the times up to which
-- `sweep` has deleted.
--
-- Either the operations are in an order in which rows can be locked, or `locked` names all rows, which are then locked
-- first. sql-constants.ts has the kinds, roles and steps.
--
-- @param session, host, pid, label of the box
-- @param durable whether a value is written. Then the call waits for the disk, and the box sends the notices.
-- @param within whether this runs in a transaction of the caller's, whose settings are then left unchanged
-- @param row_timeout how long to wait for a row that another transaction has locked, in milliseconds
-- @param waits whether to wait for values that another transaction has locked
-- @param ttls how long a waiter blocks others without a heartbeat; for a commit, 1 if it releases its guard
-- @param labels the labels of requests; if empty, the label of the box
-- @param steps `finish` for operations that finish_many may execute, `grant` for those that grant_many may execute after
-- it, else 0.
-- Operations of one step share no row with each other, or with an earlier operation of a later step. Any other gets the
-- reply "again" if another transaction has locked its row by then.
-- @param claim_of, value_of, mark_of the places of the operations that the claims, values and marks belong to
-- @param value_versions the expected versions
-- @param swept the times up to which the box has deleted, see `sweep`
create or replace function signalbox.decide(
  session text, host text, pid int, label text, durable boolean, within boolean, row_timeout int, waits boolean,
  locked text[], kinds int[], names text[], ids text[], nexts text[], numbers bigint[], leases float8[],
  ttls float8[], heartbeats float8[], labels text[], steps int[],
  claim_of int[], claim_names text[], claim_modes int[], claim_permits int[], claim_maxima int[], claim_keys text[],
  value_of int[], value_roles int[], value_names text[], value_versions bigint[], contents text[],
  mark_of int[], marks uuid[], swept float8[]
) returns text
language plpgsql set search_path = pg_catalog, pg_temp
-- One plan for all calls, by the indexes, no matter how full the tables were when it was made.
set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_variable
declare
  now float8 := signalbox.clock();
  kind int;
  many int := cardinality(kinds);
  done text[] := array_fill(null::text, array[cardinality(kinds)]);
  reads text[];
  notices text := '';
  answer text;
  decided record;
  step record;
  made int := 0;
  to_move bigint[] := '{}'::bigint[];
  claims signalbox.claim[];
  its_marks uuid[];
  has_locked boolean := false;
  fresh text[];
begin
  label := nullif(label, '');
  if not within then
    answer := set_config('lock_timeout', row_timeout::text, true);
    if not durable then answer := set_config('synchronous_commit', 'off', true); end if;
  end if;
  if {step.finish} = any(steps) then
    for attempt in 1 .. 2 loop
      step := signalbox.finish_many(kinds => kinds, ids => ids, numbers => numbers, leases => leases, steps => steps,
        claim_of => claim_of, claim_names => claim_names, value_of => value_of, value_roles => value_roles,
        value_names => value_names, value_versions => value_versions, contents => contents, mark_of => mark_of,
        marks => marks, now => now, done => done);
      done := step.done; to_move := to_move || step.to_move; made := made + step.made;
      has_locked := has_locked or step.has_locked;
      exit when step.missing = '{}' or attempt = 2;
      fresh := step.missing; made := made + cardinality(fresh);
      has_locked := true;
      perform signalbox.make_rows(fresh, null);
    end loop;
  end if;
  if {step.grant} = any(steps) then
    step := signalbox.grant_many(session => session, host => host, pid => pid, label => label, kinds => kinds,
      names => names, ids => ids, numbers => numbers, leases => leases, labels => labels, steps => steps,
      claim_of => claim_of, claim_names => claim_names, now => now, done => done);
    done := step.done; to_move := to_move || step.to_move; has_locked := has_locked or step.has_locked;
  end if;
  if not has_locked and cardinality(locked) > 0 then
    perform from signalbox.numbers(locked) k,
      lateral (select from signalbox.data s where s.id = k.id for no key update) d;
  end if;
  for i in 1 .. many loop
    continue when done[i] is not null or kinds[i] = {kind.read};
    kind := kinds[i];
    claims := array(
      select row(c.name, c.mode, nullif(c.permits, 0), nullif(c.max_permits, 0), nullif(c.key, ''))::signalbox.claim
        from unnest(claim_of, claim_names, claim_modes, claim_permits, claim_maxima, claim_keys) with ordinality
          c(place, name, mode, permits, max_permits, key, at)
        where c.place = i order by c.at);
    if kind = {kind.commit} then
      its_marks := array(select m.mark from unnest(mark_of, marks) m(place, mark) where m.place = i);
    end if;
    answer := null;
    if has_locked and claims <> '{}' then
      -- This call has locked rows that may come after these in the order, so it doesn't wait for these.
      perform from unnest(claims) c
        where exists (select from signalbox.keys k where k.name = c.name)
          and not exists (
            select from (
              select from signalbox.data d
                where d.id = (select k.id from signalbox.keys k where k.name = c.name order by k.id desc limit 1)
                for no key update skip locked) l);
      if found then answer := '"again"'; end if;
    end if;
    if answer is null and kind <= {kind.cancel} and cardinality(claims) = 1 and (claims[1]).mode = {mode.exclusive} and (claims[1]).key is null then
      decided := signalbox.decide_simple(kind => kind, session => session, host => host, pid => pid,
        label => coalesce(nullif(labels[i], ''), label), name => names[i], id => ids[i], following => nexts[i],
        number => numbers[i], lease => leases[i], ttl => ttls[i], heartbeat => heartbeats[i], now => now);
      answer := decided.answer;
      notices := notices || coalesce(decided.notices, '');
      if decided.to_move is not null then to_move := to_move || decided.to_move; end if;
    end if;
    if answer is null and kind in ({kind.enqueue}, {kind.release}) and cardinality(claims) = 1 and (claims[1]).mode > {mode.exclusive} then
      decided := signalbox.decide_together(kind => kind, session => session, host => host, pid => pid,
        label => coalesce(nullif(labels[i], ''), label), name => names[i], id => ids[i], number => numbers[i],
        lease => leases[i], claim => claims[1], now => now);
      answer := decided.answer;
      if decided.to_move is not null then to_move := to_move || decided.to_move; end if;
    end if;
    if kind = {kind.sweepExpired} and answer is null and cardinality(claims) = 1 then
      -- Usually the key is free, or neither its holder nor the first waiter has expired: there is nothing to do.
      select '0' into answer where not exists (
        select from signalbox.data d
          where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1) and cardinality(d.queue) > 0
            and not ((d.queue[1]).phase > {phase.waiting} and (d.queue[1]).expires > now and (d.queue[1]).claims is null
              and (d.queue[1]).session is not null and coalesce(signalbox.blocks(d.queue[2], now), cardinality(d.queue) = 1)));
    end if;
    if answer is not null then
      null;
    elsif kind <= {kind.revoke} then
      decided := signalbox.decide_lock(kind => kind, session => session, host => host, pid => pid,
        label => coalesce(nullif(labels[i], ''), label), id => ids[i], following => nexts[i], number => numbers[i],
        lease => leases[i], ttl => ttls[i], heartbeat => heartbeats[i], claims => claims);
      answer := decided.answer;
      notices := notices || decided.notices;
      made := made + decided.made;
      to_move := to_move || decided.to_move;
    elsif kind = {kind.commit} and within then
      begin
        answer := '["lost"]';
        if names[i] = '' or signalbox.fence(
          array(select c.name from unnest(claims) c where c.mode = {mode.exclusive}), names[i], ids[i], numbers[i])
        then
          decided := signalbox.commit_values(guard => null, request => '', number => 0, place => i, value_of => value_of,
            value_roles => value_roles, value_names => value_names, value_versions => value_versions,
            contents => contents, marks => its_marks, retention => leases[i], waits => waits, now => now);
          answer := decided.answer;
        end if;
        -- The error unlocks the rows, so that the box can acquire the keys again while the transaction is open.
        if answer not like '["committed"%' then raise exception 'not committed' using errcode = 'SB002'; end if;
      exception when sqlstate 'SB002' then null;
      end;
    elsif kind = {kind.commit} then
      decided := signalbox.commit_values(guard => nullif(names[i], ''), request => ids[i], number => numbers[i],
        place => i, value_of => value_of, value_roles => value_roles, value_names => value_names,
        value_versions => value_versions, contents => contents, marks => its_marks, retention => leases[i],
        waits => waits, now => now);
      answer := decided.answer;
      made := made + decided.made;
      to_move := to_move || decided.to_move;
      if answer like '["committed"%' and names[i] <> '' and ttls[i] = 1 then
        decided := signalbox.decide_lock(kind => {kind.release}, session => session, host => host, pid => pid,
          label => null, id => ids[i], following => '', number => numbers[i], lease => 0, ttl => 0, heartbeat => 0,
          claims => claims);
        notices := notices || decided.notices;
        to_move := to_move || decided.to_move;
      end if;
    elsif kind = {kind.watch} then
      insert into signalbox.watchers as w (name, session, until)
        values (names[i], ids[i], to_timestamp((now + leases[i]) / 1000))
        on conflict on constraint watchers_pkey do update set until = excluded.until;
      made := made + 1;
      answer := '0';
    elsif kind = {kind.unwatch} then
      delete from signalbox.watchers w where w.name = names[i] and w.session = ids[i];
      answer := '0';
    end if;
    done[i] := answer;
  end loop;
  if {role.read} = any(value_roles) or {kind.read} = any(kinds) or mark_of <> '{}' and kinds && '{{kind.enqueue},{kind.checkIn}}' then
    reads := signalbox.read_many(many, value_of, value_roles, value_names, mark_of, marks);
    for i in 1 .. many loop
      if kinds[i] = {kind.read} then done[i] := format('[%s]', reads[i]);
      elsif kinds[i] in ({kind.enqueue}, {kind.checkIn}) and done[i] ~ '^[0-9]+$' and reads[i] <> '[],[]' then
        done[i] := format('["held",%s,[%s]]', done[i], reads[i]);
      end if;
    end loop;
  end if;
  if durable then
    select notices || coalesce(string_agg(format('["changed",%s,%s],', to_json(w.session), to_json(w.name)), ''), '')
      into notices
      from signalbox.watchers w
      where w.until > to_timestamp(now / 1000) and w.name in (
        select v.name from unnest(value_of, value_roles, value_names) v(place, role, name)
          where v.role in ({role.written}, {role.deleted}) and done[v.place] like '["committed"%');
  elsif notices <> '' and not within then
    perform signalbox.notify_others(notices, session);
  end if;
  if fresh is not null then
    -- Has the rows deleted later that got no value.
    update signalbox.keys k set due = now + {time.kept}
      where k.name = any(fresh) and exists (select from signalbox.data d where d.id = k.id and d.value is null);
  end if;
  if to_move <> '{}' and not within then perform signalbox.move_rows(to_move); end if;
  if made > 0 and not within then swept := signalbox.sweep(2 * made + 1, swept); end if;
  return format('[[%s],[%s],[%s]]', array_to_string(done, ','), rtrim(notices, ','), array_to_string(swept::bigint[], ','));
end $$;
