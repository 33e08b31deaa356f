import { systemClock } from '../../base/clock.js'
import type { Engine } from '../../engine/contract.js'
import { ifInstalled } from '../../engine/kit/if-installed.js'
import { missingPackage } from '../../engine/kit/missing-package.js'
import { HazelcastEngine } from './hazelcast-engine.js'
import type { ExistingHazelcast } from './existing-hazelcast.js'
import { configuredPlace, parseHazelcastUrl } from './hazelcast-url.js'
import type { Package } from './link.js'

/**
 * Returns the engine for a Hazelcast URL, or for a configuration of the client.
 * @throws InvalidArgumentError if the URL or an option is invalid; UnavailableError if the client package is missing
 */
export async function openHazelcast(source: string | ExistingHazelcast): Promise<Engine> {
  const place = typeof source === 'string' ? parseHazelcastUrl(source) : configuredPlace(source)
  return new HazelcastEngine(place, await installedPackage(), systemClock)
}

/** Returns the installed client package. @throws MissingPackageError if there is none */
export async function installedPackage(): Promise<Package> {
  const hazelcast = await ifInstalled<Package & { readonly default?: Package }>(
    import('hazelcast-client'),
    'Hazelcast',
  )
  // Node may not find all names of a CommonJS package without running it.
  if (hazelcast !== undefined) return hazelcast.default ?? hazelcast
  throw missingPackage('Hazelcast needs a client package', ['hazelcast-client'])
}
