-- Writes the states of limiters that were decided for a time of this server's clock, each only if its version is the
-- expected one; 0 stands for a missing limiter. Writes nothing if that time is in the future, or further in the past than
-- the slack. All callers pass the names in the same order.
--
-- `requests` and `answers` have a JSON text for each limiter, or an empty one. If the state is written, the requests of
-- other boxes that it includes get their answers, and those of the caller that it includes are deleted: `answers` lists
-- the time, ID and answer of each, without an answer for those of the caller. Otherwise the requests of the caller are
-- left for other boxes, unless one has answered them: `requests` lists the time, ID and text of each.
--
-- Returns for each limiter its version; if nothing was written, the current state and the answers to the caller;
-- otherwise the oldest requests that have no answer.
create or replace function signalbox.decide_limiters(
  wanted text[], expected bigint[], decided float8, slack float8, contents text[], requests text[], answers text[], swept float8[]
) returns text
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $$
#variable_conflict use_variable
declare
  now float8 := signalbox.clock();
  is_timely boolean := decided <= now and now - decided <= slack;
  is_kept boolean;
  kept json[] := '{}'::json[];
  made int := 0;
  added int;
  version bigint;
  content text;
  answered json;
  changes int;
  row_id bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', '2000', true);
  for i in 1 .. cardinality(wanted) loop
    is_kept := false;
    content := null;
    answered := null;
    if is_timely then
      if expected[i] = 0 and signalbox.make_rows(wanted[i:i], now + {time.kept}) then made := made + 1; end if;
      -- A row without content counts as missing: it was only inserted.
      update signalbox.data d set
          version = greatest(d.version + 1, floor(now * 1000)::bigint), value = contents[i], changes = d.changes + 1
        where d.id = (select k.id from signalbox.keys k where k.name = wanted[i] order by k.id desc limit 1)
          and expected[i] = case when d.value is null then 0 else d.version end
        returning d.version, d.changes, d.id into version, changes, row_id;
      is_kept := found;
    end if;
    if is_kept then
      if changes >= {changes.max} then perform signalbox.move_rows(array[row_id]); end if;
      if answers[i] <> '' then
        update signalbox.permit_requests r set answer = a.value ->> 2 from json_array_elements(answers[i]::json) a
          where r.name = wanted[i] and r.since = (a.value ->> 0)::float8 and r.id = a.value ->> 1 and a.value ->> 2 is not null;
        delete from signalbox.permit_requests r using json_array_elements(answers[i]::json) a
          where r.name = wanted[i] and r.since = (a.value ->> 0)::float8 and r.id = a.value ->> 1 and a.value ->> 2 is null;
      end if;
    else
      version := 0;
      select d.version, d.value into version, content
        from signalbox.data d
        where d.id = (select k.id from signalbox.keys k where k.name = wanted[i] order by k.id desc limit 1);
      if content is null then version := 0; end if;
      -- Read after the state: a state that includes a request must not be used without its answer.
      if requests[i] <> '' then
        insert into signalbox.permit_requests (name, since, id, request)
          select wanted[i], (a.value ->> 0)::float8, a.value ->> 1, a.value ->> 2 from json_array_elements(requests[i]::json) a
          on conflict do nothing;
        get diagnostics added = row_count;
        made := made + added;
        with gone as (
          delete from signalbox.permit_requests r using json_array_elements(requests[i]::json) a
            where r.name = wanted[i] and r.since = (a.value ->> 0)::float8 and r.id = a.value ->> 1 and r.answer is not null
            returning r.id, r.answer
        )
        select json_agg(json_build_array(g.id, g.answer)) into answered from gone g;
      end if;
    end if;
    kept := kept || json_build_array(is_kept, version, content, answered, case when is_kept then (
      select json_agg(json_build_array(p.since::bigint, p.id, p.request)) from (
        select r.since, r.id, r.request from signalbox.permit_requests r
          where r.name = wanted[i] and r.since > now - {time.kept} and r.answer is null order by r.since limit 100
      ) p
    ) end);
  end loop;
  if made > 0 then swept := signalbox.sweep(2 * made + 1, swept); end if;
  return json_build_array(is_timely, floor(now)::bigint, array_to_json(kept), array_to_json(swept::bigint[]));
end $$;

-- Returns the time, and the states of all limiters.
create or replace function signalbox.limiters() returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select json_build_array(floor(signalbox.clock())::bigint, coalesce(json_agg(json_build_array(d.name, d.value)), '[]'))::text
      from signalbox.keys k join signalbox.data d on d.id = k.id
      where starts_with(k.name, 'limit') and d.value is not null
  );
end $$;
