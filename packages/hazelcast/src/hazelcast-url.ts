import type { ClientConfig } from 'hazelcast-client'
import { InvalidArgumentError, type ExistingHazelcast } from 'signalbox'
import { checkOptions, percentDecoded, shown, urlParameters } from 'signalbox/engine'

/** A cluster, and the map in it whose keys are locked. */
export interface HazelcastPlace {
  /** The URL without user, password and query, for messages. */
  readonly name: string
  readonly config: ClientConfig
  /** The names of the other maps begin with this name. */
  readonly map: string
}

const FORM = /^hazelcast:\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/
const DEFAULT_CLUSTER = 'dev'
const DEFAULT_MAP = 'signalbox'
const DEFAULT_PORT = 5701
const KNOWN = ['map']
/** The suffixes of the two other maps, after the name of the map of locks. */
const TABLE = '.table'
const VALUES = '.values'

/**
 * Parses a Hazelcast URL. User, password and the name of the cluster are percent-encoded.
 * @throws InvalidArgumentError; its message never contains the password
 */
export function parseHazelcastUrl(url: string): HazelcastPlace {
  const match = FORM.exec(url)
  if (!match)
    throw new InvalidArgumentError(
      'a Hazelcast URL must look like hazelcast://user:password@host:5701,host/cluster',
    )
  const [, login, hosts = '', path = '', query = ''] = match
  const parameters = urlParameters(query)
  checkOptions(Object.fromEntries(parameters), KNOWN)
  const clusterMembers = hosts.split(',').map(address)
  const clusterName = path === '' ? DEFAULT_CLUSTER : percentDecoded('the cluster in a Hazelcast URL', path)
  return {
    name: `hazelcast://${hosts}${path === '' ? '' : `/${path}`}`,
    config: {
      clusterName,
      network: { clusterMembers },
      ...(login === undefined ? {} : { security: { usernamePassword: credentials(login) } }),
    },
    map: mapName(parameters.get('map')),
  }
}

/** Checks a configuration of the client. @throws InvalidArgumentError if it is invalid */
export function configuredPlace({ hazelcast, map, ...rest }: ExistingHazelcast): HazelcastPlace {
  checkOptions(rest, KNOWN)
  if (typeof hazelcast !== 'object' || (hazelcast as object | null) === null)
    throw new InvalidArgumentError(
      `hazelcast must be a configuration of hazelcast-client, not ${shown(hazelcast)}`,
    )
  const config = hazelcast as ClientConfig
  const { clusterName = DEFAULT_CLUSTER, network } = config
  const name = `hazelcast://${network?.clusterMembers?.join(',') ?? ''}/${clusterName}`
  return { name, config, map: mapName(map) }
}

/** Returns the names of the three maps: for the locks, for the boxes, and for the entries of keys. */
export function mapNames(map: string): readonly [locks: string, table: string, values: string] {
  return [map, `${map}${TABLE}`, `${map}${VALUES}`]
}

function mapName(map: unknown): string {
  if (map === undefined) return DEFAULT_MAP
  if (typeof map !== 'string' || map === '')
    throw new InvalidArgumentError(`map must be the name of a map, not ${shown(map)}`)
  const taken = [TABLE, VALUES].find(end => map.endsWith(end))
  if (taken !== undefined)
    throw new InvalidArgumentError(
      `map must be a name that does not end with '${taken}', the name of another map of Signalbox, not ${shown(map)}`,
    )
  return map
}

function address(host: string): string {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(host)
  const port = Number(match?.[2] ?? DEFAULT_PORT)
  if (!match || port < 1 || port > 65535)
    throw new InvalidArgumentError('a Hazelcast URL must have addresses like host:5701')
  return `${match[1]!}:${port}`
}

function credentials(login: string): { username: string; password: string } {
  const [username = '', password, ...rest] = login.split(':')
  if (password === undefined || rest.length > 0)
    throw new InvalidArgumentError(
      'a Hazelcast URL must have its credentials as user:password, percent-encoded',
    )
  return {
    username: percentDecoded('the user in a Hazelcast URL', username),
    password: percentDecoded('the password in a Hazelcast URL', password),
  }
}
