import { schemaIdentifier } from './postgres-url.js'

/** The rights that the role of a box needs on the tables and the sequence of the schema. */
const RIGHTS: Readonly<Record<string, readonly string[]>> = {
  keys: ['select', 'insert', 'update', 'delete'],
  data: ['select', 'insert', 'update', 'delete'],
  tails: ['select', 'insert', 'update', 'delete'],
  signs: ['select', 'insert', 'update', 'delete'],
  recorded: ['select', 'insert', 'update', 'delete'],
  watchers: ['select', 'insert', 'update', 'delete'],
  permit_requests: ['select', 'insert', 'update', 'delete'],
  ids: ['usage'],
}

/** Returns the statements that grant a role the rights that a box needs, if another role owns the schema. */
export function grantsText(schema: string, role: string): string {
  const own = schemaIdentifier(schema)
  const grants = Object.entries(RIGHTS).map(([object, rights]) => {
    const kind = object === 'ids' ? 'sequence ' : ''
    return `grant ${rights.join(', ')} on ${kind}${own}.${object} to ${role};`
  })
  return [
    `grant usage on schema ${own} to ${role};`,
    ...grants,
    `grant execute on all functions in schema ${own} to ${role};`,
  ].join('\n')
}

/**
 * Returns a query for the rights on existing objects of the schema that the user lacks, such as `select on
 * signalbox.data`, as JSON. It reads only catalogs, which every role may read. So a missing right is reported, and causes
 * no failure.
 */
export function lackingRights(schema: string): string {
  const pairs = Object.entries(RIGHTS).flatMap(([object, all]) => all.map(each => `'${object}', '${each}'`))
  const rights = pairs.map((pair, place) => `(${place}, ${pair})`).join(', ')
  return `
  select coalesce(json_agg(l.lacking), '[]') from (
    select 'usage on schema ' || n.nspname from pg_namespace n
      where n.nspname = '${schema}' and not has_schema_privilege(n.oid, 'usage')
    union all
    select string_agg(w.privilege, ', ' order by w.place) || ' on ' || n.nspname || '.' || c.relname
      from (values ${rights}) w(place, object, privilege)
        join pg_class c on c.relname = w.object
        join pg_namespace n on n.oid = c.relnamespace and n.nspname = '${schema}'
      where not case c.relkind
        when 'S' then has_sequence_privilege(c.oid, w.privilege)
        else has_table_privilege(c.oid, w.privilege)
      end
      group by n.nspname, c.relname
    union all
    select 'execute on function ' || n.nspname || '.' || p.proname
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace and n.nspname = '${schema}'
      where not has_function_privilege(p.oid, 'execute')
  ) l(lacking)`
}
