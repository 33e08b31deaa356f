import { withoutSecrets } from '../../base/secrets.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { percentDecoded, urlParameters } from '../../engine/kit/url-parameters.js'
import type { Address, Login, NetworkAddress } from './clients/connection.js'
import { redisOptions, type RedisOptions } from './redis-options.js'

/** A parsed URL with a scheme of {@link KINDS} or {@link VALKEY}. */
export interface RedisPlace {
  /** For errors and logs: the URL without user, password and query. */
  readonly name: string
  readonly server: RedisServerPlace
  readonly login: Login
  readonly options: Required<RedisOptions>
}

/** The address of the server, or of the servers that know it. */
export type RedisServerPlace =
  | { readonly kind: 'server'; readonly address: Address }
  | { readonly kind: 'sentinel'; readonly sentinels: readonly NetworkAddress[]; readonly masterName: string }
  | { readonly kind: 'cluster'; readonly seeds: readonly NetworkAddress[] }

const KINDS = {
  redis: { kind: 'server', tls: false, port: 6379 },
  rediss: { kind: 'server', tls: true, port: 6379 },
  'redis+unix': { kind: 'server', tls: false, port: 0 },
  'redis+sentinel': { kind: 'sentinel', tls: false, port: 26_379 },
  'rediss+sentinel': { kind: 'sentinel', tls: true, port: 26_379 },
  'redis+cluster': { kind: 'cluster', tls: false, port: 6379 },
  'rediss+cluster': { kind: 'cluster', tls: true, port: 6379 },
} as const

type Scheme = keyof typeof KINDS

/** The schemes of Valkey, which has the protocol of Redis, and the scheme that each stands for. */
const VALKEY: Readonly<Record<string, Scheme>> = { valkey: 'redis', valkeys: 'rediss' }

const FORM = /^([a-z+]+):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/
const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\],]+))(?::(\d{1,5}))?$/i

/**
 * Parses a Redis URL. Users and passwords are percent-encoded.
 * @throws InvalidArgumentError that says what is wrong, and never contains the password
 */
export function parseRedisUrl(url: string): RedisPlace {
  const match = FORM.exec(url)
  const given = match?.[1] ?? ''
  const scheme = (VALKEY[given] ?? given) as Scheme
  if (!match || !Object.hasOwn(KINDS, scheme)) {
    // The error does not contain the URL: a malformed URL may have its password anywhere.
    throw new InvalidArgumentError(
      `a Redis URL must look like redis://user:password@host:6379/0, with a scheme of ${Object.keys(KINDS).join(', ')}`,
    )
  }
  const [, , credentials = '', hosts = '', path = '', query = ''] = match
  const name = withoutSecrets(`${scheme}://${hosts}${path}`)
  const parameters = urlParameters(query)
  const server = serverOf(name, scheme, hosts, path)
  const database = databaseOf(name, scheme, path, parameters)
  parameters.delete('db')
  const options: Record<string, unknown> = Object.fromEntries(parameters)
  if (/^\d+$/.test(parameters.get('minReplicas') ?? ''))
    options['minReplicas'] = Number(options['minReplicas'])
  const [username = '', ...password] = credentials.split(':')
  return {
    name,
    server,
    login: {
      username: percentDecoded(name, username) || undefined,
      password: password.length === 0 ? undefined : percentDecoded(name, password.join(':')),
      database,
    },
    options: redisOptions(options),
  }
}

function serverOf(name: string, scheme: Scheme, hosts: string, path: string): RedisServerPlace {
  if (scheme === 'redis+unix') {
    if (hosts !== '' || path.length < 2)
      throw new InvalidArgumentError(
        `${name} must have the path of a socket, like redis+unix:///run/redis.sock`,
      )
    return { kind: 'server', address: { path: percentDecoded(name, path) } }
  }
  const addresses = addressesOf(name, scheme, hosts)
  const { kind } = KINDS[scheme]
  if (kind === 'cluster') return { kind, seeds: addresses }
  if (kind === 'sentinel') {
    const masterName = percentDecoded(name, path.slice(1))
    if (masterName !== '') return { kind, sentinels: addresses, masterName }
    throw new InvalidArgumentError(
      `${name} must have the master's name as its path, like redis+sentinel://host/name`,
    )
  }
  if (addresses.length > 1)
    throw new InvalidArgumentError(
      `${name} names several servers, which only redis+sentinel: and redis+cluster: allow`,
    )
  return { kind, address: addresses[0]! }
}

function addressesOf(name: string, scheme: Scheme, hosts: string): NetworkAddress[] {
  const { tls, port: usual } = KINDS[scheme]
  return (hosts === '' ? 'localhost' : hosts).split(',').map(text => {
    const [, ipv6, host, port] = HOST_AND_PORT.exec(text) ?? []
    const number = port === undefined ? usual : Number(port)
    if ((ipv6 ?? host) === undefined || number < 1 || number > 65_535)
      throw new InvalidArgumentError(`${name} must have addresses like host:6379`)
    return { host: (ipv6 ?? host)!, port: number, tls }
  })
}

function databaseOf(name: string, scheme: Scheme, path: string, parameters: Map<string, string>): number {
  const inPath = scheme === 'redis' || scheme === 'rediss'
  const given = inPath ? path.slice(1) : (parameters.get('db') ?? '')
  if (inPath && parameters.has('db'))
    throw new InvalidArgumentError(`${name} must have its database as the path, like redis://host/1`)
  const { kind } = KINDS[scheme]
  if (kind === 'cluster' && (given !== '' || path.length > 1))
    throw new InvalidArgumentError(`${name} must have no path and no database: a cluster has only database 0`)
  if (given === '') return 0
  if (!/^\d{1,9}$/.test(given))
    throw new InvalidArgumentError(`${name} must have the number of a database, not ${shown(given)}`)
  return Number(given)
}
