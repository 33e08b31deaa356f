import {
  checkPath,
  CREATOR_ACL,
  OPEN_ACL,
  parseAcl,
  parseEnsemble,
  type Acl,
  type ConnectOptions,
} from '../index.js'
import { InvalidArgumentError } from 'signalbox'
import { checkOptions, milliseconds, shown, urlParameters } from 'signalbox/engine'

/** A parsed URL, such as `zookeeper://user:password@host:2181,host:2181/app?sessionTimeout=10s`. */
export interface ZooKeeperPlace {
  /** For messages: the URL without user, password and query. */
  readonly name: string
  /** All servers, as a connect string. */
  readonly ensemble: string
  /** The node below which everything is kept; '' for the whole tree. */
  readonly root: string
  /** Options of the client, such as TLS and the user. */
  readonly connect: ConnectOptions & { readonly sessionTimeout: number }
  /** The ACL of the nodes that this box creates. */
  readonly acl: readonly Acl[]
  /** Whether each request also has the nodes that kazoo and Curator's read-write lock count. */
  readonly isBridged: boolean
}

const FORM = /^(zookeeper(?:\+tls)?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/
const DEFAULT_ROOT = '/signalbox'
/** The path where the server keeps its configuration and quotas. */
const RESERVED = /^\/zookeeper(\/|$)/
const DEFAULT_SESSION_TIMEOUT = 10_000
const SESSION_TIMEOUT = { min: 1000, max: 3_600_000 }
const KNOWN = ['sessionTimeout', 'acl', 'auth', 'bridge']

/**
 * Parses a ZooKeeper URL. User and password are percent-encoded.
 * @throws InvalidArgumentError that names the mistake, and never contains the password
 */
export function parseZooKeeperUrl(url: string): ZooKeeperPlace {
  const match = FORM.exec(url)
  if (!match)
    throw new InvalidArgumentError(
      'a ZooKeeper URL must look like zookeeper://user:password@host:2181,host/path',
    )
  const [, scheme = '', credentials, hosts = '', path = '', query = ''] = match
  const root = path === '/' ? '' : path === '' ? DEFAULT_ROOT : path
  if (root !== '') checkedByClient(() => checkPath(root))
  if (RESERVED.test(root))
    throw new InvalidArgumentError(
      `the path of a ZooKeeper URL must not be in ${shown('/zookeeper')}, which the server keeps for itself: use another path, such as /app`,
    )
  try {
    parseEnsemble(hosts)
  } catch {
    throw new InvalidArgumentError('a ZooKeeper URL must have addresses like host:2181')
  }
  const parameters = urlParameters(query)
  checkOptions(Object.fromEntries(parameters), KNOWN)
  const login = credentials === undefined ? undefined : decoded(credentials)
  const auth = parameters.get('auth') ?? 'digest'
  if (auth !== 'digest' && auth !== 'sasl')
    throw new InvalidArgumentError(`auth must be 'digest' or 'sasl', not ${shown(auth)}`)
  if (auth === 'sasl' && !/^[^:]+:./s.test(login ?? ''))
    throw new InvalidArgumentError("auth 'sasl' needs a user and a password in the URL")
  const sessionTimeout = numeric(parameters.get('sessionTimeout')) ?? DEFAULT_SESSION_TIMEOUT
  const bridge = parameters.get('bridge') ?? 'false'
  if (bridge !== 'true' && bridge !== 'false')
    throw new InvalidArgumentError(`bridge must be 'true' or 'false', not ${shown(bridge)}`)
  return {
    name: `${scheme}://${hosts}${root === '' ? '/' : root}`,
    ensemble: hosts,
    root,
    connect: {
      sessionTimeout: milliseconds('sessionTimeout', sessionTimeout, SESSION_TIMEOUT),
      ...(scheme === 'zookeeper+tls' && { tls: {} }),
      ...(login !== undefined && loginOptions(login, auth)),
    },
    acl: aclOf(parameters.get('acl') ?? 'open', login),
    isBridged: bridge === 'true',
  }
}

/** @param login `user:password` */
function loginOptions(login: string, auth: 'digest' | 'sasl'): Pick<ConnectOptions, 'auth' | 'sasl'> {
  if (auth === 'digest') return { auth: [{ scheme: 'digest', data: login }] }
  const end = login.indexOf(':')
  return { sasl: { user: login.slice(0, end), password: login.slice(end + 1) } }
}

/** Parses the ACL: a name, or a list as in ZooKeeper's command-line client. */
function aclOf(text: string, login: string | undefined): readonly Acl[] {
  if (text === 'open') return OPEN_ACL
  if (text !== 'creator' && !text.includes(':'))
    throw new InvalidArgumentError(
      `acl must be 'open', 'creator' or a list like auth::cdrwa,world:anyone:r, not ${shown(text)}`,
    )
  const acl = text === 'creator' ? CREATOR_ACL : checkedByClient(() => parseAcl(text))
  if (login === undefined && acl.some(({ scheme }) => scheme === 'auth'))
    throw new InvalidArgumentError("acl 'creator' and the scheme auth need a user and a password in the URL")
  return acl
}

/** Returns the result of a check of the client package, and converts its error. */
function checkedByClient<T>(check: () => T): T {
  try {
    return check()
  } catch (cause) {
    throw new InvalidArgumentError((cause as Error).message, { cause })
  }
}

/** Converts the text of a number, which means milliseconds, to a number. */
function numeric(text: string | undefined): string | number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text
}

function decoded(credentials: string): string {
  try {
    const text = decodeURIComponent(credentials)
    if (/^[^:]+:/.test(text)) return text
  } catch {
    // Reported below, without the password.
  }
  throw new InvalidArgumentError(
    'a ZooKeeper URL must have its credentials as user:password, percent-encoded',
  )
}
