import type { Diagnosis } from './engine/diagnosis.js'
import { registeredFor } from './engines/registry.js'

/**
 * Examines the servers or files of a URL of `open` without acquiring a lock: their versions, and settings that weaken a
 * promise. On ZooKeeper and Hazelcast it writes a temporary entry of its own, to read their clocks; on PostgreSQL it
 * sends itself a notification. An engine without settings, such as `memory:`, has neither facts nor findings.
 *
 * ```ts
 * const { findings } = await diagnose('redis://localhost:6379')
 * for (const { how, fix } of findings) console.log(how, fix)
 * ```
 * @throws InvalidArgumentError when the URL is invalid; UnavailableError when the engine can't be reached.
 */
export async function diagnose(url: string): Promise<Diagnosis> {
  return (await registeredFor(url).diagnose?.(url)) ?? { facts: [], findings: [] }
}
