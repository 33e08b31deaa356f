import { schemaIdentifier, schemaName } from './postgres-url.js'
import { grantsText } from './rights.js'
import { SAFE_PATH, schemaText } from './schema.js'

/**
 * Returns the SQL that creates the schema, followed by the grants for other roles, as comments.
 * @param name of the schema; undefined for the default
 * @throws InvalidArgumentError if it is not a valid schema name
 */
export function printedSchema(name: string | undefined): string {
  const schema = schemaName(name)
  const own = schemaIdentifier(schema)
  const grants = `
The rights for a role of boxes, here named app, when it does not own the schema:

${grantsText(schema, 'app')}

The rights for a role of people who look at locks and values:

grant usage on schema ${own} to people;
grant select on ${own}.locks, ${own}.values to people;
`
  const comments = grants
    .trim()
    .replaceAll(/^(?=.)/gm, '-- ')
    .replaceAll(/^$/gm, '--')
  return `begin;
set local search_path = ${SAFE_PATH};

${schemaText(schema).trim()}

commit;

${comments}\n`
}
