/** The statements that create the views, which show people what the rows hold. Nothing of Signalbox reads them. */
export function viewsText(schema: string): string {
  return `
-- The holders of each key and its waiters: a line for each key of a request that has not expired.
create or replace view ${schema}.locks as
  select
    case json_typeof(c.claim) when 'string' then c.claim #>> '{}' else c.claim ->> 0 end as key,
    r.request ->> 4 as phase,
    case
      when json_typeof(c.claim) = 'string' then 'exclusive'
      when json_array_length(c.claim) = 1 then 'shared'
      else (c.claim ->> 1) || ' of ' || (c.claim ->> 2)
    end as claim,
    r.request ->> 2 as host,
    (r.request ->> 3)::int as pid,
    r.request ->> 1 as session,
    r.request ->> 8 as label,
    nullif((r.request ->> 7)::bigint, 0) * 1024 as token,
    to_timestamp((r.request ->> 9)::float8 / 1000) as since,
    to_timestamp((r.request ->> 5)::float8 / 1000) as expires
  from ${schema}.names n
    join ${schema}.state s on s.id = n.id
    cross join lateral json_array_elements(
      case when starts_with(n.name, 'lock') and s.data <> '' then s.data::json end
    ) r(request)
    -- A request is in the row of one key. The rows of its other keys have only its id, and no claims.
    cross join lateral json_array_elements(r.request -> 10) c(claim)
  where to_timestamp((r.request ->> 5)::float8 / 1000) > clock_timestamp();

-- The values of stores, as JSON. A key that is too long for an index is shown as its hash, without its store.
create or replace view ${schema}.values as
  select
    case when starts_with(n.name, 'value/') then split_part(n.name, '/', 2) end as store,
    regexp_replace(n.name, '^value(/[^/]*/)?', '') as key,
    case when starts_with(n.name, 'value') then (split_part(s.data, E'\\n', 1)::json ->> 0)::bigint end as version,
    substr(s.data, position(E'\\n' in s.data) + 1) as value
  from ${schema}.names n
    join ${schema}.state s on s.id = n.id
  where starts_with(n.name, 'value') and s.data <> '' and not s.data ~ '\\n$';
`
}
