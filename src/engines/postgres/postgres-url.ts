import { InvalidArgumentError, shown } from '../../errors.js'
import { urlParameters } from '../../engine/kit/url-parameters.js'

/** A database, and the schema in it that the engine has for itself. */
export interface PostgresPlace {
  /** For messages: the URL without user, password and query. */
  readonly name: string
  /** What client packages take, without the parameters that are Signalbox's own. */
  readonly url: string
  readonly schema: string
}

const DEFAULT_SCHEMA = 'signalbox'
/** Parameters that the client packages know. */
const PASSED_ON = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'host', 'application_name']
const FORM = /^postgres(?:ql)?:\/\/(?:[^@/?#]*@)?([^@/?#]*)\/([^/?#]*)(?:\?([^#]*))?$/

/**
 * Reads a URL of PostgreSQL.
 * @throws InvalidArgumentError that says what is wrong, and never contains the password
 */
export function parsePostgresUrl(url: string): PostgresPlace {
  const match = FORM.exec(url)
  if (!match)
    throw new InvalidArgumentError(
      'a PostgreSQL URL looks like postgres://user:password@host:5432/database?schema=signalbox',
    )
  const [, host = '', database = '', query = ''] = match
  const parameters = urlParameters(query)
  for (const name of parameters.keys())
    if (name !== 'schema' && !PASSED_ON.includes(name))
      throw new InvalidArgumentError(
        `PostgreSQL has no option ${shown(name)}; known are schema, ${PASSED_ON.join(', ')}`,
      )
  const schema = schemaName(parameters.get('schema'))
  parameters.delete('schema')
  const rest = new URLSearchParams([...parameters]).toString()
  return {
    name: `postgres://${host}/${database}${schema === DEFAULT_SCHEMA ? '' : `?schema=${schema}`}`,
    url: url.split('?')[0]! + (rest === '' ? '' : `?${rest}`),
    schema,
  }
}

/** @throws InvalidArgumentError when it is no name of a schema */
export function schemaName(schema: unknown): string {
  if (schema === undefined) return DEFAULT_SCHEMA
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,39}$/.test(schema))
    throw new InvalidArgumentError(
      `schema takes a name of up to 40 small letters, digits and underscores, not ${shown(schema)}`,
    )
  return schema
}
