import * as client57 from 'hazelcast-client57'
import { open as openBox, type Box } from 'signalbox'
import { systemClock } from 'signalbox/engine'
import { HazelcastEngine } from '../../packages/hazelcast/src/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import type { Package } from '../../packages/hazelcast/src/link.js'

/** Opens a box with hazelcast-client 5.7, in the processes that checks start. */
export function open(url: string): Promise<Box> {
  // The types of 5.7 differ from those of 5.6 where they have private members.
  const hazelcast = client57 as unknown as Package
  return openBox({ engine: new HazelcastEngine(parseHazelcastUrl(url), hazelcast, systemClock) })
}
