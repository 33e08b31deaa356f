import { systemClock } from '../../clock.js'
import { MissingPackageError, UnavailableError } from '../../errors.js'
import type { Engine } from '../../engine/contract.js'
import { HazelcastEngine } from './hazelcast-engine.js'
import type { GivenHazelcast } from './given-hazelcast.js'
import { givenPlace, parseHazelcastUrl } from './hazelcast-url.js'
import type { Package } from './link.js'

/**
 * The engine of a Hazelcast URL, or of a configuration of the client.
 * @throws InvalidArgumentError when the URL or an option is invalid; UnavailableError when the client package is
 * missing
 */
export async function openHazelcast(source: string | GivenHazelcast): Promise<Engine> {
  const place = typeof source === 'string' ? parseHazelcastUrl(source) : givenPlace(source)
  return new HazelcastEngine(place, await installedPackage(), systemClock)
}

/** The installed client package. @throws UnavailableError when there is none */
export async function installedPackage(): Promise<Package> {
  try {
    const hazelcast = (await import('hazelcast-client')) as Package & { readonly default?: Package }
    // Node may not find all names of a CommonJS package without running it.
    return hazelcast.default ?? hazelcast
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND')
      throw new MissingPackageError('Hazelcast needs a client package: npm install hazelcast-client')
    throw new UnavailableError('The Hazelcast client package that is installed cannot be loaded', {
      cause: error,
    })
  }
}
