import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { InvalidArgumentError, shown } from './errors.js'
import { checkPath } from './paths.js'

/** A server as the caller named it. */
export interface Host {
  readonly host: string
  readonly port: number
}

/** An address of a server. */
export interface Address extends Host {
  /** The name of the host, for which its certificate must be valid. */
  readonly name: string
}

/** The servers of an ensemble, and the node below which a client works there. */
export interface Ensemble {
  readonly hosts: readonly Host[]
  /** '' for the whole tree. */
  readonly chroot: string
}

const DEFAULT_PORT = 2181

/**
 * Parses a connect string of ZooKeeper: `host:port,host:port/chroot`. The default port is 2181, and an IPv6 address is
 * in brackets.
 * @throws InvalidArgumentError
 */
export function parseEnsemble(text: unknown): Ensemble {
  if (typeof text !== 'string') throw invalid(text)
  const slash = text.indexOf('/')
  const chroot = slash < 0 ? '' : text.slice(slash)
  try {
    if (chroot !== '' && chroot !== '/') checkPath(chroot)
  } catch {
    // `checkPath` would show the path of a URL with a password.
    throw invalid(text)
  }
  const hosts = (slash < 0 ? text : text.slice(0, slash)).split(',').map(part => parseHost(part.trim(), text))
  return { hosts, chroot: chroot === '/' ? '' : chroot }
}

function parseHost(part: string, text: string): Host {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/[\]\s@]+))(?::(\d{1,5}))?$/.exec(part)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3])
  if (host === undefined || port < 1 || port > 65_535) throw invalid(text)
  return { host, port }
}

function invalid(value: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `an ensemble must look like 'host:2181,other:2181/path', not ${shown(withoutLogin(value))}`,
  )
}

/** A user may have passed a URL with a password. */
function withoutLogin(value: unknown): unknown {
  return typeof value === 'string' ? value.slice(value.lastIndexOf('@') + 1) : value
}

/**
 * Returns all current addresses of the hosts in random order, so that clients spread over them.
 * @throws the error of the last failed lookup if all fail
 */
export async function addressesOf(hosts: readonly Host[]): Promise<Address[]> {
  const found: Address[] = []
  let failure: unknown
  await Promise.all(
    hosts.map(async ({ host, port }) => {
      if (isIP(host) !== 0) return void found.push({ host, port, name: host })
      try {
        for (const { address } of await lookup(host, { all: true }))
          found.push({ host: address, port, name: host })
      } catch (error) {
        failure = error
      }
    }),
  )
  if (found.length === 0) throw failure
  return shuffled(found)
}

function shuffled<T>(values: T[]): T[] {
  for (let last = values.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    ;[values[last], values[other]] = [values[other]!, values[last]!]
  }
  return values
}
