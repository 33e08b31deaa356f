-- Holders and waiters: one row for each key of each request that has not expired.
create or replace view signalbox.locks as
  select
    coalesce(c.key, substr(coalesce(c.name, d.name), 6)) as key,
    (array['waiting', 'reserved', 'held'])[r.phase + 1] as phase,
    case coalesce(c.mode, {mode.exclusive})
      when 1 then 'exclusive' when 2 then 'shared' else c.permits::text || ' of ' || c.max_permits::text
    end as claim,
    r.host, r.pid, r.session, r.label,
    nullif(greatest(r.number, 0), 0) * 1024 as token,
    to_timestamp(r.since / 1000) as since,
    to_timestamp(u.at / 1000) as expires
  from signalbox.data d
    cross join lateral (
      select q.* from unnest(d.queue) q
      union all
      select (t.request).* from signalbox.tails t where t.name = d.name) r
    left join lateral unnest(r.claims) c on true
    left join signalbox.signs s on s.session = r.session and r.number = {number.covered}
    cross join lateral (select greatest(r.expires, s.seen + least(r.lease, {time.waiterTtl})) as at) u
  where r.session is not null and to_timestamp(u.at / 1000) > clock_timestamp();

-- The values of stores, as JSON. A key that is too long for an index appears as its hash, without its store.
create or replace view signalbox.values as
  select
    case when starts_with(d.name, 'value/') then split_part(d.name, '/', 2) end as store,
    regexp_replace(d.name, '^value(/[^/]*/)?', '') as key,
    d.version, d.value
  from signalbox.data d
  where starts_with(d.name, 'value');
