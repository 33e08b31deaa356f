-- Locks the rows of values until the transaction ends, in the order in which rows are locked: for share those that are
-- only expected, with that role. Returns the content of those that it could lock.
create or replace function signalbox.lock_values(wanted text[], roles int[], waits boolean)
returns table (name text, version bigint, value text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  at record;
begin
  for at in
    select n.id, roles[array_position(wanted, n.name)] = {role.expected} as is_shared from signalbox.numbers(wanted) n
  loop
    case
      when waits and at.is_shared then return query
        select d.name, d.version, d.value from signalbox.data d where d.id = at.id for share;
      when waits then return query
        select d.name, d.version, d.value from signalbox.data d where d.id = at.id for no key update;
      when at.is_shared then return query
        select d.name, d.version, d.value from signalbox.data d where d.id = at.id for share skip locked;
      else return query
        select d.name, d.version, d.value from signalbox.data d where d.id = at.id for no key update skip locked;
    end case;
  end loop;
end $$;

-- Commits values as decideCommit of commit.ts does: checks everything, then writes everything or nothing. The caller
-- releases the guard. Uses the values with this place; If another transaction has
-- locked a value, changes nothing and answers '["held", name]'; with `waits`, waits for the values before it locks the
-- guard.
create or replace function signalbox.commit_values(
  guard text, request text, number bigint, place int, value_of int[], value_roles int[], value_names text[],
  value_versions bigint[], contents text[], marks uuid[], retention float8, waits boolean, now float8,
  out answer text, out made int, out to_move bigint[]
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  roles int[];
  wanted text[];
  versions bigint[];
  counter bigint;
  holds boolean := true;
  known text[];
  known_versions bigint[];
  known_values text[];
  absent text[];
  written text[];
  deleted text[];
  kept int;
  held text;
  at int;
  expected int := 0;
begin
  made := 0;
  to_move := '{}';
  select coalesce(array_agg(v.role order by v.at), '{}'), coalesce(array_agg(v.name order by v.at), '{}'),
      array_agg(v.version order by v.at)
    into roles, wanted, versions
    from unnest(value_of, value_roles, value_names, value_versions) with ordinality v(place, role, name, version, at)
    where v.place = place;
  if waits then perform from signalbox.lock_values(wanted, roles, true); end if;
  if guard is not null then
    perform from signalbox.data d
      where d.id = (select k.id from signalbox.keys k where k.name = guard order by k.id desc limit 1) for no key update;
    holds := signalbox.holds(guard, request, number, now);
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
    from signalbox.lock_values(wanted, roles, false) v;
  if cardinality(known) < cardinality(wanted) then
    absent := array(select n from unnest(wanted) n where n <> all (known));
    select k.name into held from signalbox.numbers(absent) k limit 1;
    if found then answer := format('["held",%s]', to_json(held)); return; end if;
  end if;
  for i in 1 .. cardinality(wanted) loop
    continue when versions[i] < 0;
    expected := expected + 1;
    at := array_position(known, wanted[i]);
    -- A row can be inserted before its value is written.
    if (case when known_values[at] is null then 0 else known_versions[at] end) <> versions[i] then
      answer := format('["conflict",%s,[%s,%s]]', expected, coalesce(to_json(known_values[at])::text, 'null'),
        case when known_values[at] is null then 0 else known_versions[at] end);
      return;
    end if;
  end loop;

  counter := greatest(counter, floor(now * 1000)::bigint);
  written := array(select n.name from unnest(wanted, roles) n(name, role) where n.role = {role.written});
  deleted := array(select n.name from unnest(wanted, roles) n(name, role) where n.role = {role.deleted});
  if absent is not null then
    -- A row without a value keeps others from inserting one that is expected to be absent, until this transaction ends.
    absent := array(
      select n.name from unnest(wanted, roles, versions) n(name, role, version)
        where n.name = any(absent) and (n.role = {role.written} or n.version >= 0));
    if not signalbox.make_rows(absent, null) then
      -- Another transaction is inserting it. The error undoes the rows that this one has inserted.
      raise exception 'a value is made by another transaction' using errcode = 'serialization_failure';
    end if;
    made := cardinality(absent);
    update signalbox.keys k set due = now + {time.kept} where k.name = any(absent) and k.name <> all(written);
  end if;
  answer := '["committed",[]]';
  if written <> '{}' then
    with w as (
      update signalbox.data d set version = counter + n.at, value = n.content, changes = d.changes + 1
        from unnest(value_of, value_roles, value_names, contents) with ordinality n(place, role, name, content, at)
        where n.place = place and n.role = {role.written}
          and d.id = (select k.id from signalbox.keys k where k.name = n.name order by k.id desc limit 1)
        returning d.id, d.changes, d.version, n.at
    )
    select coalesce(array_agg(w.id) filter (where w.changes >= {changes.max}), '{}'),
        format('["committed",[%s]]', string_agg(w.version::text, ',' order by w.at))
      into to_move, answer from w;
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
end $$;
