import hazelcast from 'hazelcast-client'
import type { Diagnosis } from 'signalbox'
import { checkUrl, clockFact, systemClock } from 'signalbox/engine'
import { parseHazelcastUrl } from './hazelcast-url.js'
import { Link } from './link.js'
import { hazelcastFacts, type HazelcastFacts } from './diagnosed-facts.js'
import { hazelcastFindings } from './diagnosed-findings.js'

/**
 * Diagnoses the cluster of a `hazelcast:` URL and the maps that the URL names.
 * @throws UnavailableError if no member answers.
 */
export async function diagnoseHazelcast(url: string): Promise<Diagnosis> {
  checkUrl(url)
  const place = parseHazelcastUrl(url)
  const listener = { hinted: () => undefined, missed: () => undefined }
  const link = new Link(place, () => '', hazelcast, systemClock, listener)
  try {
    const facts = await hazelcastFacts(await link.get(), hazelcast)
    return { facts: factsOf(place.name, facts), findings: hazelcastFindings(facts) }
  } finally {
    await link.close()
  }
}

function factsOf(name: string, facts: HazelcastFacts): string[] {
  const { members, refusals } = facts
  const versions = members.map(
    ({ address, version, isLite }) =>
      `${address} ${version ?? '(unknown version)'}${isLite ? ' (lite)' : ''}`,
  )
  return [
    `${name}: Hazelcast ${versions.join(', ')}${clockFact(facts)}`,
    ...refusals.map(refusal => `${name}: could not be examined: ${refusal}`),
    `${name}: split-brain protection and random eviction can't be seen from a client`,
  ]
}
