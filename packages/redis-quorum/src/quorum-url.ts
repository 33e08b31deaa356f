import { InvalidArgumentError } from 'signalbox'

/** A parsed quorum URL. */
export interface QuorumPlace {
  /** For messages: the URL without user, password and query. */
  readonly name: string
  /** A URL for each server, with the user, the password, the database and the options of the quorum URL. */
  readonly servers: readonly string[]
}

const FORM = /^(rediss?)-quorum:\/\/([^@/?#]*@)?([^@/?#]*)([^?#]*)(\?[^#]*)?$/

/**
 * Parses a URL of several Redis servers, like `redis-quorum://user:password@host1,host2,host3/0?prefix=app:`.
 * @throws InvalidArgumentError that says what is wrong, and never contains the password
 */
export function parseQuorumUrl(url: string): QuorumPlace {
  const [, scheme, credentials = '', hosts = '', path = '', query = ''] = FORM.exec(url) ?? []
  if (scheme === undefined) {
    // The error does not contain the URL: a malformed URL may have its password anywhere.
    throw new InvalidArgumentError(
      'a quorum URL must look like redis-quorum://user:password@host1:6379,host2:6379,host3:6379/0, or rediss-quorum:',
    )
  }
  const all = hosts.split(',')
  // An empty host would mean a server on this machine.
  if (all.includes(''))
    throw new InvalidArgumentError(`${scheme}-quorum://${hosts}${path} must have a host between commas`)
  return {
    name: `${scheme}-quorum://${hosts}${path}`,
    servers: all.map(host => `${scheme}://${credentials}${host}${path}${query}`),
  }
}
