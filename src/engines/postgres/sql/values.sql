-- Reads values and looks for ids: '[[value, version], ...], [found, ...]' in the order asked for.
create or replace function signalbox.read_all(wanted text[], marks uuid[]) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return format('[%s,%s]',
    coalesce((
      select json_agg(json_build_array(d.value, case when d.value is null then 0 else d.version end) order by w.place)
        from unnest(wanted) with ordinality w(name, place)
          left join signalbox.keys k on k.name = w.name
          left join signalbox.data d on d.id = k.id
    )::text, '[]'),
    coalesce((
      select json_agg(exists (
        select from signalbox.recorded r where r.mark = m.mark and r.until > to_timestamp(signalbox.clock() / 1000)
      ) order by m.place) from unnest(marks) with ordinality m(mark, place)
    )::text, '[]'));
end $$;

-- Commits values as decideCommit of commit.ts does: checks everything, then writes everything or nothing. The caller
-- releases the guard. The answer is '["held", name]' where a transaction elsewhere holds a value, and nothing is done;
-- with `waits`, the values are waited for, before any lock.
create or replace function signalbox.commit_values(
  guard text, request text, number bigint, expected text[], versions bigint[], written text[], deleted text[],
  contents text[], marks uuid[], retention float8, waits boolean,
  out answer text, out made int, out worn bigint[]
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  now float8;
  counter bigint;
  holds boolean := true;
  wanted text[] := expected || written || deleted;
  known text[] := '{}';
  known_versions bigint[] := '{}';
  known_values text[] := '{}';
  absent text[];
  kept int;
  found_row record;
  at int;
  changed record;
  fresh bigint[] := '{}';
begin
  made := 0;
  worn := '{}';
  if waits then
    perform from (select k.id from signalbox.keys k where k.name = any(wanted) order by k.name) k,
      lateral (select from signalbox.data s where s.id = k.id for no key update) d;
  end if;
  if guard is not null then
    perform from signalbox.keys k join signalbox.data d on d.id = k.id
      where k.name = guard for no key update of d;
    now := signalbox.clock();
    holds := exists (
      select from signalbox.keys k join signalbox.data d on d.id = k.id, unnest(d.queue) q
        where k.name = guard and q.id = request and q.phase = 2 and q.number = number and q.expires > now);
  end if;
  now := signalbox.clock();
  if marks <> '{}' and (guard is null or not holds) then
    select m.place into at from unnest(marks) with ordinality m(mark, place)
      where exists (select from signalbox.recorded r where r.mark = m.mark and r.until > to_timestamp(now / 1000))
      order by m.place limit 1;
    if found then answer := format('["repeated",%s]', at); return; end if;
  end if;
  if not holds then answer := '["lost"]'; return; end if;
  counter := floor(now * 1000)::bigint;

  for found_row in
    select k.name, d.version, d.value
      from (select k.name, k.id from signalbox.keys k where k.name = any(wanted) order by k.name) k,
        lateral (select s.* from signalbox.data s where s.id = k.id for no key update skip locked) d
  loop
    known := known || found_row.name;
    -- A row can be made before its value is.
    known_versions := known_versions || case when found_row.value is null then 0 else found_row.version end;
    known_values := array_append(known_values, found_row.value);
    counter := greatest(counter, found_row.version);
  end loop;
  absent := array(select distinct n from unnest(wanted) n where n <> all (known));
  if absent <> '{}' then
    select k.name into found_row from signalbox.keys k where k.name = any(absent) limit 1;
    if found then answer := format('["held",%s]', to_json(found_row.name)); return; end if;
  end if;
  for i in 1 .. cardinality(expected) loop
    at := array_position(known, expected[i]);
    if coalesce(known_versions[at], 0) <> versions[i] then
      answer := format('["conflict",%s,[%s,%s]]', i, coalesce(to_json(known_values[at])::text, 'null'),
        coalesce(known_versions[at], 0));
      return;
    end if;
  end loop;

  absent := array(select n from unnest(written) n where n = any(absent));
  if absent <> '{}' then
    if not signalbox.make_rows(absent, null) then
      -- Another transaction makes it at this time. What this one has made is undone.
      raise exception 'a value is made by another transaction' using errcode = 'serialization_failure';
    end if;
    made := cardinality(absent);
  end if;
  if cardinality(written) > 0 then
    for changed in
      with w as (
        select k.id, w.value, counter + w.place as version
          from unnest(written, contents) with ordinality w(name, value, place) join signalbox.keys k on k.name = w.name
      )
      update signalbox.data d set version = w.version, value = w.value, changes = d.changes + 1
        from w where d.id = w.id returning d.id, d.changes
    loop
      if changed.changes >= 200 then worn := worn || changed.id; end if;
    end loop;
  end if;
  if cardinality(deleted) > 0 then
    with gone as (delete from signalbox.keys k where k.name = any(deleted) returning k.id)
    delete from signalbox.data d using gone g where d.id = g.id;
  end if;
  if marks <> '{}' then
    insert into signalbox.recorded as r (mark, until)
      select m, to_timestamp((now + retention) / 1000) from unnest(marks) m
      on conflict (mark) do update set until = greatest(r.until, excluded.until)
        where holds and guard is not null or r.until <= to_timestamp(now / 1000);
    get diagnostics kept = row_count;
    if kept < cardinality(marks) then
      raise exception 'an id is recorded already' using errcode = 'serialization_failure';
    end if;
    made := made + kept;
  end if;
  -- Each write has the next version, in the order of `written`.
  answer := format('["committed",%s]', counter);
end $$;
