-- Takes over the values and recorded IDs of the first version of the schema. Drops its tables and functions, so that an
-- open box of that version fails, and shares nothing with newer ones.
do $$
begin
  if to_regclass('signalbox.state') is null then return; end if;
  lock table signalbox.state in access exclusive mode;
  if exists (
    select from signalbox.names n join signalbox.state s on s.id = n.id,
      json_array_elements(
        case when starts_with(n.name, 'lock') and s.data <> '' then s.data::json end
      ) p
      where (p ->> 4) = 'held'
        and (p ->> 5)::float8 > signalbox.clock()
  ) then
    raise exception 'an older version of Signalbox holds locks in the table signalbox.state: stop all its processes first';
  end if;
  create temp table signalbox_upgraded on commit drop as
    select n.name, s.id,
        substr(s.data, strpos(s.data, E'\n') + 1) as value,
        (split_part(s.data, E'\n', 1)::json ->> 0)::int8 as version
      from signalbox.names n join signalbox.state s on s.id = n.id
      where starts_with(n.name, 'value') and s.data <> '';
  delete from pg_temp.signalbox_upgraded u where u.value = '';
  insert into signalbox.keys (name, id) select u.name, u.id from pg_temp.signalbox_upgraded u;
  insert into signalbox.data (id, name, version, value) select u.id, u.name, u.version, u.value from pg_temp.signalbox_upgraded u;
  drop view if exists signalbox.locks, signalbox.values;
  drop table signalbox.names, signalbox.state;
  drop function signalbox.settings(boolean, boolean);
  drop function signalbox.rows(text[], text[], uuid[], boolean);
  drop function signalbox.found(text, text);
  drop function signalbox.change(
    float8, float8, boolean, boolean, bigint[], bigint[], text[], bigint, bigint[], uuid[], uuid[], float8[], boolean[]);
  drop function signalbox.move(bigint[]);
  drop function signalbox.tell(text[], text[]);
  drop function signalbox.lock(bigint[], bigint[]);
  drop function signalbox.stale(bigint[], bigint[]);
  drop function signalbox.sweep(text, int, float8);
  drop function signalbox.fence(text[], text, bigint);
end $$;
