import { InvalidArgumentError, shown } from '../../base/errors.js'

/** How to connect over TLS. */
export interface PostgresTls {
  /** Whether to connect to a server without TLS, too. */
  readonly isOptional: boolean
  /** The checks of the certificate: none, that it is trusted, or also that it is for this host. */
  readonly checks: 'nothing' | 'certificate' | 'certificate and host'
  readonly rootCertificate: string | undefined
  readonly certificate: string | undefined
  readonly key: string | undefined
}

const CHECKS: Readonly<Record<string, PostgresTls['checks']>> = {
  allow: 'nothing',
  prefer: 'nothing',
  require: 'nothing',
  'verify-ca': 'certificate',
  'verify-full': 'certificate and host',
}

/**
 * Reads the TLS parameters of a URL; undefined means no encryption.
 * @throws InvalidArgumentError
 */
export function tlsOf(parameters: ReadonlyMap<string, string>): PostgresTls | undefined {
  const root = parameters.get('sslrootcert')
  const files = [root, parameters.get('sslcert'), parameters.get('sslkey')].some(file => file !== undefined)
  const bindsChannel = parameters.get('channel_binding') === 'require'
  const mode = parameters.get('sslmode') ?? (files || bindsChannel ? 'verify-full' : 'disable')
  if (mode === 'disable' && !bindsChannel) return undefined
  const checks = Object.hasOwn(CHECKS, mode) ? CHECKS[mode] : undefined
  if (checks === undefined && mode !== 'disable')
    throw new InvalidArgumentError(
      `sslmode must be one of disable, ${Object.keys(CHECKS).join(', ')}, not ${shown(mode)}`,
    )
  const isOptional = mode === 'allow' || mode === 'prefer'
  if (bindsChannel && (isOptional || checks === undefined))
    throw new InvalidArgumentError(`channel_binding=require needs TLS, and sslmode is ${mode}`)
  if (root === 'system' && mode !== 'verify-full')
    throw new InvalidArgumentError(`sslrootcert=system needs sslmode=verify-full, and sslmode is ${mode}`)
  return {
    isOptional,
    checks: bindsChannel ? 'certificate and host' : checksWith(root, checks!, isOptional),
    rootCertificate: root === 'system' ? undefined : root,
    certificate: parameters.get('sslcert'),
    key: parameters.get('sslkey'),
  }
}

/** With a root certificate, `require` works like `verify-ca`. */
function checksWith(
  root: string | undefined,
  checks: PostgresTls['checks'],
  isOptional: boolean,
): PostgresTls['checks'] {
  return checks === 'nothing' && root !== undefined && !isOptional ? 'certificate' : checks
}
