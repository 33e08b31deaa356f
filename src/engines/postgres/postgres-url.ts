import { InvalidArgumentError, shown } from '../../errors.js'
import { urlParameters } from '../../engine/kit/url-parameters.js'

/** A database, and the schema in it that the engine has for itself. */
export interface PostgresPlace {
  /** For messages: the URL without user, password and query. */
  readonly name: string
  readonly address: PostgresAddress
  readonly schema: string
}

/** How a database is reached. What is undefined is for the client package to find out. */
export interface PostgresAddress {
  /** A name, an address, or the folder of a socket. */
  readonly host: string | undefined
  readonly port: number | undefined
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly applicationName: string | undefined
  readonly tls: PostgresTls | undefined
}

/** Over TLS, with these files. */
export interface PostgresTls {
  /** Whether the certificate of the server is checked, and whether it has to be for this host. */
  readonly checks: 'nothing' | 'certificate' | 'certificate and host'
  readonly rootCertificate: string | undefined
  readonly certificate: string | undefined
  readonly key: string | undefined
}

const DEFAULT_SCHEMA = 'signalbox'
const KNOWN = ['schema', 'host', 'application_name', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']
const CHECKS: Readonly<Record<string, PostgresTls['checks']>> = {
  require: 'nothing',
  'verify-ca': 'certificate',
  'verify-full': 'certificate and host',
}
const FORM =
  /^postgres(?:ql)?:\/\/(?:([^@/?#:]*)(?::([^@/?#]*))?@)?(\[[0-9a-fA-F:.]+\]|[^@/?#:,[\]]*)(?::(\d{1,5}))?\/([^/?#]*)(?:\?([^#]*))?$/

/**
 * Reads a URL of PostgreSQL.
 * @throws InvalidArgumentError that says what is wrong, and never contains the password
 */
export function parsePostgresUrl(url: string): PostgresPlace {
  const [isFit, user, password, host = '', port, database = '', query = ''] = FORM.exec(url) ?? []
  if (isFit === undefined)
    throw new InvalidArgumentError(
      'a PostgreSQL URL looks like postgres://user:password@host:5432/database?schema=signalbox',
    )
  const parameters = urlParameters(query)
  for (const name of parameters.keys())
    if (!KNOWN.includes(name))
      throw new InvalidArgumentError(`PostgreSQL has no option ${shown(name)}; known are ${KNOWN.join(', ')}`)
  const schema = schemaName(parameters.get('schema'))
  const place = `${host}${port === undefined ? '' : `:${port}`}/${database}`
  return {
    name: placeName(place, schema),
    address: {
      host: parameters.get('host') ?? decoded(host.replace(/^\[|\]$/g, '')),
      port: port === undefined ? undefined : Number(port),
      user: decoded(user),
      password: decoded(password),
      database: decoded(database),
      applicationName: parameters.get('application_name'),
      tls: tlsOf(parameters),
    },
    schema,
  }
}

/** What a place is called in messages. @param place host, port and database. */
export function placeName(place: string, schema: string): string {
  return `postgres://${place}${schema === DEFAULT_SCHEMA ? '' : `?schema=${schema}`}`
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

/** Undefined when there is nothing. */
function decoded(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw new InvalidArgumentError('a PostgreSQL URL has a % that two hexadecimal digits do not follow')
  }
}

function tlsOf(parameters: ReadonlyMap<string, string>): PostgresTls | undefined {
  const files = ['sslrootcert', 'sslcert', 'sslkey'].filter(name => parameters.has(name))
  const mode = parameters.get('sslmode') ?? (files.length > 0 ? 'verify-full' : 'disable')
  if (mode === 'disable') return undefined
  const rootCertificate = parameters.get('sslrootcert')
  const checks = CHECKS[mode]
  if (checks === undefined)
    throw new InvalidArgumentError(
      `sslmode takes disable, ${Object.keys(CHECKS).join(', ')}, not ${shown(mode)}`,
    )
  return {
    checks: checks === 'nothing' && rootCertificate !== undefined ? 'certificate' : checks,
    rootCertificate,
    certificate: parameters.get('sslcert'),
    key: parameters.get('sslkey'),
  }
}
