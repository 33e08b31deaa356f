import { schemaIdentifier } from './postgres-url.js'
import { sqlFiles } from './sql-files.js'

/** The version of the schema: a box of another version creates its functions anew, or refuses a newer one. */
export const SCHEMA_VERSION = 2

/**
 * The statements that create the schema, harmless when it is there already.
 * @param schema its name, made of letters, digits and underscores
 */
export function schemaText(schema: string): string {
  const version = `
create or replace function signalbox.version() returns int language sql immutable as 'select ${SCHEMA_VERSION}';
`
  return [...sqlFiles(), version].join('\n').replaceAll(/\bsignalbox(?=[.;])/g, schemaIdentifier(schema))
}
