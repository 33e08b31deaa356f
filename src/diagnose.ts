import type { Diagnosis } from './engine/diagnosis.js'
import { registeredFor } from './engines/registry.js'

/**
 * Looks at what a URL of `open` names, without taking a lock: which versions answer, and which of their settings weaken
 * a promise. On ZooKeeper and Hazelcast it writes an entry of its own for a moment, to read their clocks; on PostgreSQL
 * it sends itself a message by NOTIFY. An engine without settings, such as `memory:`, gives neither facts nor findings.
 *
 * ```ts
 * const { findings } = await diagnose('redis://localhost:6379')
 * for (const { how, mend } of findings) console.log(how, mend)
 * ```
 * @throws InvalidArgumentError when the URL is unfit; UnavailableError when the engine can't be reached.
 */
export async function diagnose(url: string): Promise<Diagnosis> {
  return (await registeredFor(url).diagnose?.(url)) ?? { facts: [], findings: [] }
}
