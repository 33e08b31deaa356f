import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { percentDecoded, urlParameters } from '../../engine/kit/url-parameters.js'
import { tlsOf, type PostgresTls } from './postgres-tls.js'

/** A database, and the schema in it that the engine uses for itself. */
export interface PostgresPlace {
  /** The URL without user, password and query, for messages. */
  readonly name: string
  readonly address: PostgresAddress
  readonly schema: string
}

/** How to reach a database. The client package chooses values that are undefined. */
export interface PostgresAddress {
  /** Servers to try in this order; of several, the box connects to the first one that accepts writes. */
  readonly servers: readonly [PostgresServerAddress, ...PostgresServerAddress[]]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly applicationName: string | undefined
  /** Command-line options for the server, such as `-c work_mem=8MB`. */
  readonly options: string | undefined
  /** Maximum time to connect to one server, in milliseconds. */
  readonly connectTimeout: number | undefined
  readonly tls: PostgresTls | undefined
}

/** One of the servers of a URL. */
export interface PostgresServerAddress {
  /** A name, an address, or the directory of a socket. */
  readonly host: string | undefined
  readonly port: number | undefined
}

const DEFAULT_SCHEMA = 'signalbox'
const FORM = /^postgres(?:ql)?:\/\/(?:([^@/?#:]*)(?::([^@/?#]*))?@)?([^@/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/
const SERVER = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]*)(?::(\d*))?$/

/** Parameters that the box uses. */
const USED = [
  'signalbox_schema',
  'host',
  'port',
  'dbname',
  'user',
  'password',
  'application_name',
  'connect_timeout',
  'options',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
]
/** Parameters of libpq whose values must match, because the box always works that way. */
const FIXED: Readonly<Record<string, RegExp>> = {
  channel_binding: /^(disable|prefer|require)$/,
  client_encoding: /^(auto|utf-?8)$/i,
  gssencmode: /^(disable|prefer)$/,
  target_session_attrs: /^(any|read-write|primary)$/,
}
/** Parameters that other programs read from the same URL. A box ignores them. */
const FOREIGN = ['schema', 'pgbouncer', 'connection_limit', 'pool_timeout', 'fallback_application_name']
const KNOWN = [...USED, ...Object.keys(FIXED), ...FOREIGN]

/**
 * Parses a PostgreSQL URL.
 * @throws InvalidArgumentError that says what is wrong, and never contains the password
 */
export function parsePostgresUrl(url: string): PostgresPlace {
  const [isFit, user, password, authority = '', database = '', query = ''] = FORM.exec(url) ?? []
  if (isFit === undefined)
    throw new InvalidArgumentError(
      'a PostgreSQL URL looks like postgres://user:password@host:5432/database?sslmode=require',
    )
  const parameters = urlParameters(query)
  checkParameters(parameters)
  const schema = ownSchema(parameters)
  const name = parameters.get('dbname') ?? decoded(database)
  const servers = serversOf(authority, parameters)
  const places = servers.map(
    ({ host = '', port }) => `${bracketed(host)}${port === undefined ? '' : `:${port}`}`,
  )
  return {
    name: placeName(`${places.join()}/${name ?? ''}`, schema),
    address: {
      servers,
      user: parameters.get('user') ?? decoded(user),
      password: parameters.get('password') ?? decoded(password),
      database: name,
      applicationName: parameters.get('application_name'),
      options: parameters.get('options'),
      connectTimeout: connectTimeout(parameters.get('connect_timeout')),
      tls: tlsOf(parameters),
    },
    schema,
  }
}

/** Returns the name of a place for messages. @param place host, port and database. */
export function placeName(place: string, schema: string): string {
  return `postgres://${place}${schema === DEFAULT_SCHEMA ? '' : `?signalbox_schema=${schema}`}`
}

/** @throws InvalidArgumentError if it is not a valid schema name */
export function schemaName(schema: unknown, option = 'schema'): string {
  if (schema === undefined) return DEFAULT_SCHEMA
  if (typeof schema !== 'string' || !/^(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,39}$/.test(schema))
    throw new InvalidArgumentError(
      `${option} must be a name of up to 40 lowercase letters, digits and underscores, ` +
        `must not begin with pg_ or a digit, and must not be information_schema, not ${shown(schema)}`,
    )
  return schema
}

/** Returns a schema for use in statements. Its name may be a keyword of SQL, such as `user`. */
export function schemaIdentifier(schema: string): string {
  return schema === DEFAULT_SCHEMA ? schema : `"${schema}"`
}

/** @throws InvalidArgumentError if the text is not a number from 1 to 65535 */
export function portNumber(text: string, option: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535)
    throw new InvalidArgumentError(`${option} must be a number from 1 to 65535, not ${shown(text)}`)
  return port
}

function checkParameters(parameters: ReadonlyMap<string, string>): void {
  checkOptions(Object.fromEntries(parameters), KNOWN)
  for (const [name, value] of parameters)
    if (FIXED[name]?.test(value) === false)
      throw new InvalidArgumentError(`${name} must not be ${shown(value)}; leave ${name} out`)
}

/**
 * In URLs, `schema` is a parameter of Prisma. Signalbox used the same name earlier, so any value except Prisma's
 * default, `public`, is ambiguous.
 */
function ownSchema(parameters: ReadonlyMap<string, string>): string {
  const own = parameters.get('signalbox_schema')
  const other = parameters.get('schema')
  if (own === undefined && other !== undefined && other !== 'public')
    throw new InvalidArgumentError(
      `the parameter schema=${shown(other)} can mean the schema of Prisma or that of Signalbox; ` +
        'name the schema of Signalbox with signalbox_schema',
    )
  return schemaName(own, 'signalbox_schema')
}

function serversOf(authority: string, parameters: ReadonlyMap<string, string>): PostgresAddress['servers'] {
  const parts = authority.split(',').map(text => {
    const [isFit, host = '', port = ''] = SERVER.exec(text) ?? []
    if (isFit === undefined)
      throw new InvalidArgumentError(
        'a PostgreSQL URL names its servers as host:5432 or [::1]:5432, several with a comma between them',
      )
    return { host: decoded(host.replace(/^\[|\]$/g, '')), port }
  })
  const hosts = parameters.get('host')?.split(',') ?? parts.map(({ host }) => host)
  const ports = parameters.get('port')?.split(',') ?? parts.map(({ port }) => port)
  if (ports.length !== 1 && ports.length !== hosts.length)
    throw new InvalidArgumentError('a PostgreSQL URL has one port for all its hosts, or one for each')
  const servers = hosts.map((host, index) => {
    const port = ports[ports.length === 1 ? 0 : index]!
    return { host: host === '' ? undefined : host, port: port === '' ? undefined : portNumber(port, 'port') }
  })
  return servers as [PostgresServerAddress, ...PostgresServerAddress[]]
}

/** Returns the timeout in milliseconds. As in libpq, the text is in seconds, and 0 means no limit. */
function connectTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,6}$/.test(text))
    throw new InvalidArgumentError(`connect_timeout must be a number of seconds, not ${shown(text)}`)
  return text.match(/^0+$/) ? undefined : Number(text) * 1000
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** Decodes a percent-encoded text. Returns undefined if it is empty. */
function decoded(text: string | undefined): string | undefined {
  return text ? percentDecoded('a PostgreSQL URL', text) : undefined
}
