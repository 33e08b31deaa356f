import { schemaIdentifier } from './postgres-url.js'
import { sqlFiles } from './sql-files.js'

/**
 * The version of the schema. A box with a newer version recreates its functions; one with an older version refuses it.
 */
export const SCHEMA_VERSION = 2

/**
 * Returns the statements that create the schema. They can be run again.
 * @param schema its name, made of letters, digits and underscores
 */
export function schemaText(schema: string): string {
  const version = `
create or replace function signalbox.version() returns int language sql immutable as 'select ${SCHEMA_VERSION}';
`
  return [...sqlFiles(), version].join('\n').replaceAll(/\bsignalbox(?=[.;])/g, schemaIdentifier(schema))
}
