import { createHash } from 'node:crypto'
import { schemaIdentifier } from './postgres-url.js'
import { sqlFile } from './sql/sql-file.js'
import { withConstants } from './sql-constants.js'
import { trustAdvice, untrustedQuery } from './untrusted.js'

/**
 * The version of the layout: the format of the rows and messages. A box with a newer version upgrades the schema; one
 * with an older version refuses it.
 */
export const SCHEMA_VERSION = 2

/**
 * The revision of the functions and views of this version of the layout. Increase it with each change of the SQL; a
 * unit test compares the hash. A box replaces functions of a lower revision, and uses those of a higher one.
 */
export const SCHEMA_REVISION = 17

/** The search path under which no objects of other roles are found. */
export const SAFE_PATH = 'pg_catalog, pg_temp'

/** The version, revision and hash that are recorded in a schema. */
export interface SchemaStamp {
  /** The version of the layout; 0 if the schema or its function `version` is missing. */
  readonly version: number
  /** 0 for functions of a package that did not record it. */
  readonly revision: number
  readonly hash: string | undefined
}

/** The action of a box on a schema that it finds. */
export type SchemaUse = 'use' | 'replace' | 'refuse'

/**
 * Decides what to do with a schema, so that boxes of two versions never replace each other's functions in turn: the
 * higher revision stays. Functions of the same revision with another text are from a build that was not released.
 */
export function useOf({ version, revision, hash }: SchemaStamp): SchemaUse {
  if (version !== SCHEMA_VERSION) return version > SCHEMA_VERSION ? 'refuse' : 'replace'
  if (revision !== SCHEMA_REVISION) return revision > SCHEMA_REVISION ? 'use' : 'replace'
  return hash === schemaHash() ? 'use' : 'replace'
}

/** Reads the comment on the function `version`. @param version of the layout */
export function stampOf(version: number, comment: string | null): SchemaStamp {
  const [, revision = '0', hash] = /^revision (\d+), ([0-9a-f]+)$/.exec(comment ?? '') ?? []
  return { version, revision: Number(revision), hash }
}

/** Returns the hash of the SQL of the schema. */
export function schemaHash(): string {
  return (hashed ??= createHash('sha256').update(sqlFiles().join('\n')).digest('hex').slice(0, 16))
}
let hashed: string | undefined

/**
 * Returns the statements that create the schema. They can be run again. If another role could have prepared the schema,
 * they fail before they run any code in it.
 * @param schema its name, made of letters, digits and underscores
 */
export function schemaText(schema: string): string {
  const guard = `
create schema if not exists signalbox;

do $guard$
declare
  untrusted text;
begin
  perform pg_catalog.set_config('jit', 'off', true);
  untrusted := (
${untrustedQuery(`'${schema}'`)}
  );
  if untrusted is not null then
    raise exception 'the schema ${schema} is not safe for the user %: %. ${trustAdvice('schema')}', current_user, untrusted;
  end if;
end $guard$;
`
  const version = `
create or replace function signalbox.version() returns int language sql immutable as 'select ${SCHEMA_VERSION}';
comment on function signalbox.version() is 'revision ${SCHEMA_REVISION}, ${schemaHash()}';
`
  return [guard, ...sqlFiles(), version]
    .join('\n')
    .replaceAll(/\bsignalbox(?=[.;])/g, schemaIdentifier(schema))
}

/** The names of the files, in the order in which they are run. */
const NAMES = [
  'tables',
  'rows',
  'upgrade',
  'lock-table',
  'values',
  'simple',
  'many',
  'decide',
  'limiters',
  'others',
  'views',
] as const

/** Returns the SQL of the schema, file by file, for a schema called signalbox. */
function sqlFiles(): readonly string[] {
  return NAMES.map(name => withConstants(sqlFile(name)))
}
