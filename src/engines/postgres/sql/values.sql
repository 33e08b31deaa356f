-- Reads values and looks for ids: '[[value, version], ...], [found, ...]' in the order asked for.
create or replace function signalbox.read_all(wanted text[], marks uuid[]) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return format('[%s,%s]',
    coalesce((
      select json_agg(json_build_array(d.value, case when d.value is null then 0 else d.version end) order by w.place)
        from unnest(wanted) with ordinality w(name, place)
          left join signalbox.data d
            on d.id = (select k.id from signalbox.keys k where k.name = w.name order by k.id desc limit 1)
    )::text, '[]'),
    coalesce((
      select json_agg(exists (
        select from signalbox.recorded r where r.mark = m.mark and r.until > to_timestamp(signalbox.clock() / 1000)
      ) order by m.place) from unnest(marks) with ordinality m(mark, place)
    )::text, '[]'));
end $$;

-- Commits values as decideCommit of commit.ts does: checks everything, then writes everything or nothing. The caller
-- releases the guard. `wanted` has the names of all values once. The answer is '["held", name]' where a transaction
-- elsewhere holds a value, and nothing is done; with `waits`, the values are waited for, before any lock.
create or replace function signalbox.commit_values(
  guard text, request text, number bigint, wanted text[], expected text[], versions bigint[], written text[],
  contents text[], deleted text[], marks uuid[], retention float8, waits boolean, now float8,
  out answer text, out made int, out worn bigint[]
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  counter bigint;
  holds boolean := true;
  known text[];
  known_versions bigint[];
  known_values text[];
  absent text[];
  kept int;
  held text;
  at int;
begin
  made := 0;
  worn := '{}';
  if waits then
    perform from signalbox.numbers(wanted) k,
      lateral (select from signalbox.data s where s.id = k.id for no key update) d;
  end if;
  if guard is not null then
    select count(*) > 0 into holds
      from (
        select s.queue from signalbox.data s where s.id = (select k.id from signalbox.keys k where k.name = guard order by k.id desc limit 1)
          for no key update
      ) d, unnest(d.queue) q
      where q.id = request and q.phase = 2 and q.number = number and q.expires > now;
  end if;
  if marks <> '{}' and (guard is null or not holds) then
    select m.place into at from unnest(marks) with ordinality m(mark, place)
      where exists (select from signalbox.recorded r where r.mark = m.mark and r.until > to_timestamp(now / 1000))
      order by m.place limit 1;
    if found then answer := format('["repeated",%s]', at); return; end if;
  end if;
  if not holds then answer := '["lost"]'; return; end if;

  select coalesce(array_agg(v.name), '{}'), array_agg(v.version), array_agg(v.value), max(v.version)
    into known, known_versions, known_values, counter
    from (
      select d.name, d.version, d.value
        from signalbox.numbers(wanted) k,
          lateral (select s.* from signalbox.data s where s.id = k.id for no key update skip locked) d
    ) v;
  if cardinality(known) < cardinality(wanted) then
    absent := array(select n from unnest(wanted) n where n <> all (known));
    select k.name into held from signalbox.numbers(absent) k limit 1;
    if found then answer := format('["held",%s]', to_json(held)); return; end if;
  end if;
  for i in 1 .. cardinality(expected) loop
    at := array_position(known, expected[i]);
    -- A row can be made before its value is.
    if (case when known_values[at] is null then 0 else known_versions[at] end) <> versions[i] then
      answer := format('["conflict",%s,[%s,%s]]', i, coalesce(to_json(known_values[at])::text, 'null'),
        case when known_values[at] is null then 0 else known_versions[at] end);
      return;
    end if;
  end loop;

  counter := greatest(counter, floor(now * 1000)::bigint);
  if absent is not null then
    absent := array(select n from unnest(written) n where n = any(absent));
    if not signalbox.make_rows(absent, null) then
      -- Another transaction makes it at this time. What this one has made is undone.
      raise exception 'a value is made by another transaction' using errcode = 'serialization_failure';
    end if;
    made := cardinality(absent);
  end if;
  if written <> '{}' then
    with w as (
      update signalbox.data d set version = counter + n.place, value = n.value, changes = d.changes + 1
        from unnest(written, contents) with ordinality n(name, value, place),
          lateral (select k.id from signalbox.keys k where k.name = n.name order by k.id desc limit 1) k
        where d.id = k.id returning d.id, d.changes
    )
    select coalesce(array_agg(w.id) filter (where w.changes >= 200), '{}') into worn from w;
  end if;
  if deleted <> '{}' then
    with gone as (delete from signalbox.keys k where k.name = any(deleted) returning k.id)
    delete from signalbox.data d using gone g where d.id = g.id;
  end if;
  if marks <> '{}' then
    insert into signalbox.recorded as r (mark, until)
      select m, to_timestamp((now + retention) / 1000) from unnest(marks) m
      on conflict (mark) do update set until = greatest(r.until, excluded.until)
        where guard is not null or r.until <= to_timestamp(now / 1000);
    get diagnostics kept = row_count;
    if kept < cardinality(marks) then
      raise exception 'an id is recorded already' using errcode = 'serialization_failure';
    end if;
    made := made + kept;
  end if;
  -- Each write has the next version, in the order of `written`.
  answer := format('["committed",%s]', counter);
end $$;
