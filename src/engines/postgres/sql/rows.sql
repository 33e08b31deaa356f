-- The time that decides: milliseconds since 1970.
create or replace function signalbox.clock() returns float8 language sql volatile as
  $$ select pg_catalog.date_part('epoch'::pg_catalog.text, pg_catalog.clock_timestamp())
       operator(pg_catalog.*) 1000::pg_catalog.float8 $$;

-- The number of a new row. After a crash a sequence gives numbers again, so the clock is the greater part of it.
create or replace function signalbox.new_id() returns bigint language sql volatile as
  $$ select (pg_catalog.floor(signalbox.clock())::pg_catalog.int8 operator(pg_catalog.*) 1024::pg_catalog.int8)
       operator(pg_catalog.+)
       (pg_catalog.nextval('signalbox.ids'::pg_catalog.regclass) operator(pg_catalog.%) 1024::pg_catalog.int8) $$;

-- The numbers of the rows of these names, in the order in which rows are locked. A name has many entries in the index
-- while a transaction elsewhere keeps old ones: the newest comes first, and the others are not looked at.
create or replace function signalbox.numbers(wanted text[]) returns table (name text, id bigint) language sql stable as
  $$ select w.name, k.id
       from (select distinct u.name collate pg_catalog."C" as name from pg_catalog.unnest(wanted) u(name)) w,
         lateral (
           select k.id from signalbox.keys k where k.name operator(pg_catalog.=) w.name order by k.id desc limit 1) k
       order by w.name $$;

-- Makes the rows of these names that are missing. True if all of them were made by this call.
create or replace function signalbox.make_rows(wanted text[], first_due float8) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  made int;
begin
  with fresh as (
    insert into signalbox.keys (name, id, due)
      select w.name, signalbox.new_id(), first_due from unnest(wanted) w(name) order by w.name
      on conflict do nothing
      returning id, name
  )
  insert into signalbox.data (id, name, version)
    select f.id, f.name, (signalbox.clock() * 1000)::bigint from fresh f;
  get diagnostics made = row_count;
  return made = cardinality(wanted);
end $$;

-- Gives rows that were changed often new numbers: while a transaction elsewhere is open, the server keeps all old
-- versions of a row, and walks through those with the same number to find the newest. Leaves rows that are bound to a
-- transaction.
create or replace function signalbox.move_rows(worn bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  with free as materialized (
    select d.id, d.name, d.version, d.queue, d.value, signalbox.new_id() as new_id
      from signalbox.data d where d.id = any(worn) for update skip locked
  ), made as (
    insert into signalbox.data (id, name, version, queue, value)
      select f.new_id, f.name, f.version, f.queue, f.value from free f
  ), named as (
    update signalbox.keys k set id = f.new_id from free f where k.name = f.name and k.id = f.id
  )
  delete from signalbox.data d using free f where d.id = f.id;
end $$;

-- Deletes what has no effect any more: a few rows that were free for a minute, ids and watchers. Whatever makes rows or
-- records ids calls this, and it deletes more than these add. A key that is used again gets a token from the clock.
-- `since` has the times up to which the caller has deleted before: the dead entries of indexes end there. Others may have
-- the same time.
create or replace function signalbox.sweep(most int, since float8[]) returns float8[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now float8 := signalbox.clock();
  old record;
  reached float8[];
  last float8;
begin
  -- Now and then it starts from the beginning, for what was committed late, or locked.
  if random() < 0.01 then since := '{0,0}'; end if;
  reached := since;
  for old in
    select k.name, k.id, k.due from signalbox.keys k where k.due >= since[1] and k.due <= now
      order by k.due limit most for update skip locked
  loop
    delete from signalbox.data d where d.id = (
      select s.id from signalbox.data s
        where s.id = old.id and s.queue is null and s.version < (now - 60000) * 1000
          -- A limiter begins with the time up to which it has an effect.
          and case when s.value ~ '^[0-9]+([.][0-9]+)? ' then split_part(s.value, ' ', 1)::float8 < now else s.value is null end
        for update skip locked
    );
    if found then delete from signalbox.keys k where k.name = old.name and k.id = old.id;
    else
      update signalbox.keys k set due = case
          when starts_with(k.name, 'value')
            and exists (select from signalbox.data d where d.id = old.id and d.value is not null) then null
          else now + 60000
        end
        where k.name = old.name and k.id = old.id;
    end if;
    reached[1] := floor(old.due);
  end loop;
  with old as (
    select r.mark from signalbox.recorded r
      where r.until >= to_timestamp(since[2] / 1000) and r.until <= to_timestamp(now / 1000)
      order by r.until limit most for update skip locked
  ), gone as (
    delete from signalbox.recorded r using old o where r.mark = o.mark returning r.until
  )
  select floor(date_part('epoch', max(g.until)) * 1000) into last from gone g;
  reached[2] := coalesce(last, since[2]);
  with old as (
    select w.name, w.session from signalbox.watchers w where w.until <= to_timestamp(now / 1000)
      order by w.until limit most for update skip locked
  )
  delete from signalbox.watchers w using old o where w.name = o.name and w.session = o.session;
  return reached;
end $$;
