import hazelcast from 'hazelcast-client'
import type { ExistingHazelcast } from 'signalbox'
import { checkUrl, systemClock, type Engine } from 'signalbox/engine'
import { HazelcastEngine } from './hazelcast-engine.js'
import { configuredPlace, parseHazelcastUrl } from './hazelcast-url.js'

/**
 * Returns the engine for a Hazelcast URL, or for a configuration of the client. `open` of Signalbox calls this when it
 * is given such a URL, so most programs only install this package.
 *
 * ```ts
 * import { open } from 'signalbox'
 * import { openHazelcast } from 'signalbox-hazelcast'
 *
 * await using box = await open({ engine: openHazelcast('hazelcast://localhost:5701/signalbox-test') })
 * ```
 *
 * @throws InvalidArgumentError if the URL or an option is invalid
 */
export function openHazelcast(source: string | ExistingHazelcast): Engine {
  if (typeof source === 'string') checkUrl(source)
  const place = typeof source === 'string' ? parseHazelcastUrl(source) : configuredPlace(source)
  return new HazelcastEngine(place, hazelcast, systemClock)
}
