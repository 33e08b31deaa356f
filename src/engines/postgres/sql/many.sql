-- The most frequent operations of a call, with one statement for all of one step. It changes nothing of an operation
-- unless all its preconditions hold. The operations of one statement share no row, see `decide`.
--
-- `done` has the replies by the places of operations. `has_locked` is whether this call has locked rows by now. If the
-- xmax of a row is 0, no transaction has locked it; otherwise one may have, and only locking the row shows it.

-- Executes releases, and commits that release: those with the step `finish`. The reply to a commit has the versions that
-- it has written. `missing` has the names of values without a row, which `decide` inserts.
--
-- A value that is expected and not written must stay unchanged until this transaction ends, so its row is locked for
-- share. If there is one, this locks all rows of values that it uses, without waiting: two transactions that each write
-- what the other expects would wait for each other.
create or replace function signalbox.finish_many(
  kinds int[], ids text[], numbers bigint[], leases float8[], steps int[], claim_of int[], claim_names text[],
  value_of int[], value_roles int[], value_names text[], value_versions bigint[], contents text[],
  mark_of int[], marks uuid[], now float8,
  inout done text[], out to_move bigint[], out made int, out missing text[], out has_locked boolean
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  micros bigint := floor(now * 1000)::bigint;
  is_partial boolean;
  already text[] := done;
  locks boolean := {role.expected} = any(value_roles);
begin
  made := 0;
  with x as materialized (
    select c.place, c.at, c.name, null::text as content, d.id, d.version, d.changes, true as is_written,
        false as is_value, false as is_locked, null::text as missing,
        coalesce(cardinality(d.queue) = 1 and (d.queue[1]).id = ids[c.place]
          and ((d.queue[1]).session is null
            or (d.queue[1]).phase = {phase.held} and (d.queue[1]).number = numbers[c.place] and (d.queue[1]).expires > now),
          false) as fits
      from unnest(claim_of, claim_names) with ordinality c(place, name, at)
        left join signalbox.data d on d.id = (select k.id from signalbox.keys k where k.name = c.name order by k.id desc limit 1)
      where steps[c.place] = {step.finish} and already[c.place] is null
    union all
    select v.place, v.at, v.name, v.content, d.id, d.version, d.changes, v.role = {role.written}, true, coalesce(l.id, e.id) is not null,
        case when d.id is null then v.name end,
        case
          when l.id is not null then v.version in ({version.any}, case when l.value is null then 0 else l.version end)
          when e.id is not null then v.version = case when e.value is null then 0 else e.version end
          else d.id is not null and v.role = {role.written} and d.xmax = 0 and not locks
            and v.version in ({version.any}, case when d.value is null then 0 else d.version end)
        end
      from unnest(value_of, value_roles, value_names, value_versions, contents) with ordinality
          v(place, role, name, version, content, at)
        left join signalbox.data d on d.id = (select k.id from signalbox.keys k where k.name = v.name order by k.id desc limit 1)
        left join lateral (
          select s.id, s.version, s.value from signalbox.data s
            where s.id = d.id and v.role = {role.written} and (d.xmax <> 0 or locks) for no key update skip locked) l on true
        left join lateral (
          select s.id, s.version, s.value from signalbox.data s
            where s.id = d.id and v.role = {role.expected} for share skip locked) e on true
      where steps[v.place] = {step.finish} and v.role in ({role.expected}, {role.written}) and already[v.place] is null
  ), y as materialized (
    select x.*, bool_and(x.fits) over w as all_fit, greatest(max(x.version) filter (where x.is_value) over w, micros) as top,
        count(*) filter (where x.is_written) over w as needed
      from x window w as (partition by x.place) order by x.name collate "C"
  ), w as (
    update signalbox.data d set
        version = case when y.is_value then y.top + y.at else greatest(d.version, micros) end,
        changes = d.changes + 1, queue = null, value = y.content
      from y
      where y.all_fit and y.is_written and d.id = y.id and d.changes = y.changes
      returning y.place, y.at, y.is_value, y.needed, d.version, d.id, d.changes
  ), a as (
    select w.place, count(*) < min(w.needed) as is_partial, case when kinds[w.place] = {kind.release} then '1' else
        format('["committed",[%s]]', string_agg(w.version::text, ',' order by w.at) filter (where w.is_value)) end as answer
      from w group by w.place
  )
  select array(
        select max(e.answer) from (
          select a.place, a.answer from a
          union all select i, already[i] from generate_series(1, cardinality(kinds)) i
        ) e group by e.place order by e.place),
      coalesce((select bool_or(a.is_partial) from a), false),
      array(select w.id from w where w.changes >= {changes.max}),
      array(select y.missing from y where y.missing is not null),
      exists (select from w) or exists (select from y where y.is_locked)
    into done, is_partial, to_move, missing, has_locked;
  if is_partial then
    raise exception 'another transaction changes a row at this time' using errcode = 'serialization_failure';
  end if;
  if mark_of <> '{}' then
    insert into signalbox.recorded as r (mark, until)
      select m.mark, to_timestamp((now + max(leases[m.place])) / 1000) from unnest(mark_of, marks) m(place, mark)
        where steps[m.place] = {step.finish} and already[m.place] is null and done[m.place] is not null group by m.mark
      on conflict (mark) do update set until = greatest(r.until, excluded.until);
    get diagnostics made = row_count;
  end if;
end $$;

-- Executes enqueues on free keys, checkIns on reserved ones, and renewals: those with the step `grant`.
create or replace function signalbox.grant_many(
  session text, host text, pid int, label text, kinds int[], names text[], ids text[], numbers bigint[],
  leases float8[], labels text[], steps int[], claim_of int[], claim_names text[], now float8,
  inout done text[], out to_move bigint[], out has_locked boolean
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  micros bigint := floor(now * 1000)::bigint;
  is_partial boolean;
  already text[] := done;
begin
  with x as materialized (
    select c.place, c.at, c.name, o.kind, o.first, o.id as request, o.lease,
        coalesce(nullif(o.label, ''), label) as its_label, d.id, d.version, d.changes, d.queue[1] as q,
        o.kind <> {kind.renew} or c.name = o.first as is_written, l.id is not null as is_locked,
        coalesce(case
          when o.kind = {kind.enqueue} then d.queue is null and (d.xmax = 0 or l.id is not null)
          when o.kind = {kind.checkIn} then (d.xmax = 0 or l.id is not null) and (d.queue[1]).id = o.id
            and ((d.queue[1]).session is null or (d.queue[1]).phase = {phase.reserved})
          else c.name <> o.first or (d.queue[1]).id = o.id and (d.queue[1]).number = o.number
            and (d.queue[1]).phase = {phase.held} and (d.queue[1]).expires > now
        end, false) as fits
      from unnest(claim_of, claim_names) with ordinality c(place, name, at)
        cross join lateral (select kinds[c.place], names[c.place], ids[c.place], numbers[c.place], leases[c.place], labels[c.place])
          o(kind, first, id, number, lease, label)
        left join signalbox.data d on d.id = (select k.id from signalbox.keys k where k.name = c.name order by k.id desc limit 1)
        left join lateral (
          select s.id from signalbox.data s where s.id = d.id and d.xmax <> 0
            and case o.kind when {kind.enqueue} then d.queue is null when {kind.checkIn} then (d.queue[1]).id = o.id end
            for update skip locked) l on true
      where steps[c.place] = {step.grant}
  ), y as materialized (
    select x.*, bool_and(x.fits) over w as all_fit, greatest(max(x.version) over w, micros) + 1 as number,
        count(*) filter (where x.is_written) over w as needed,
        case when count(*) over w > 1 then array_agg(row(x.name, {mode.exclusive}, null, null, null)::signalbox.claim) over w end as claims
      from x
      window w as (partition by x.place order by x.at rows between unbounded preceding and unbounded following)
      order by x.name collate "C"
  ), w as (
    update signalbox.data d set
        version = case when y.kind = {kind.renew} then greatest(d.version, micros) else y.number end, changes = d.changes + 1,
        queue = case
          when y.kind = {kind.enqueue} and y.name = y.first then array[row(
            y.request, null, session, host, pid, y.its_label, {phase.held}, now + y.lease, y.lease, y.number, now,
            y.claims)::signalbox.request]
          when y.kind = {kind.enqueue} then array[row(
            y.request, y.first, null, null, null, null, null, null, null, null, null, null)::signalbox.request]
          when (y.q).session is null then d.queue
          else row(
              (y.q).id, null, (y.q).session, (y.q).host, (y.q).pid, (y.q).label, {phase.held}, now + y.lease, y.lease,
              case when y.kind = {kind.renew} then (y.q).number else y.number end, (y.q).since, (y.q).claims)::signalbox.request
            || d.queue[2:]
        end
      from y
      where y.all_fit and y.is_written and d.id = y.id and d.changes = y.changes
      returning y.place, y.needed, case when y.kind = {kind.renew} then 1 else y.number end as answer, d.id, d.changes
  ), a as (
    select w.place, count(*) < min(w.needed) as is_partial, max(w.answer)::text as answer from w group by w.place
  )
  select array(
        select max(e.answer) from (
          select a.place, a.answer from a
          union all select i, already[i] from generate_series(1, cardinality(kinds)) i
        ) e group by e.place order by e.place),
      coalesce((select bool_or(a.is_partial) from a), false), array(select w.id from w where w.changes >= {changes.max}),
      exists (select from w) or exists (select from y where y.is_locked)
    into done, is_partial, to_move, has_locked;
  if is_partial then
    raise exception 'another transaction changes a row at this time' using errcode = 'serialization_failure';
  end if;
end $$;

-- Reads values and looks for IDs: '[[value, version], ...], [found, ...]' by the places of operations, in the order of
-- the arguments. An operation reads the values with the role `read` and its place, and the marks with its place.
create or replace function signalbox.read_many(
  many int, value_of int[], value_roles int[], value_names text[], mark_of int[], marks uuid[]
) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return array(
    select format('[%s],[%s]', string_agg(e.value, ',' order by e.at), string_agg(e.mark, ',' order by e.at)) from (
      select v.place, v.at, null as mark,
          case when d.value is null then '[null,0]' else format('[%s,%s]', to_json(d.value), d.version) end as value
        from unnest(value_of, value_roles, value_names) with ordinality v(place, role, name, at)
          left join signalbox.data d on d.id = (select k.id from signalbox.keys k where k.name = v.name order by k.id desc limit 1)
        where v.role = {role.read}
      union all
      select m.place, m.at, case when exists (
          select from signalbox.recorded r where r.mark = m.mark and r.until > to_timestamp(signalbox.clock() / 1000)
        ) then 'true' else 'false' end, null
        from unnest(mark_of, marks) with ordinality m(place, mark, at)
      union all
      select i, 0, null, null from generate_series(1, many) i
    ) e group by e.place order by e.place);
end $$;
