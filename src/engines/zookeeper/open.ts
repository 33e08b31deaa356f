import { systemClock } from '../../base/clock.js'
import type { Engine } from '../../engine/contract.js'
import type { Diagnosis } from '../../engine/diagnosis.js'
import { ifInstalled } from '../../engine/kit/if-installed.js'
import { missingPackage } from '../../engine/kit/missing-package.js'

/**
 * Returns the engine for a ZooKeeper URL.
 * @throws InvalidArgumentError if the URL is invalid; UnavailableError if the client package is missing
 */
export async function openZooKeeper(url: string): Promise<Engine> {
  await assertInstalled()
  const { parseZooKeeperUrl } = await import('./zookeeper-url.js')
  const { ZooKeeperEngine } = await import('./zookeeper-engine.js')
  return new ZooKeeperEngine(parseZooKeeperUrl(url), systemClock)
}

/**
 * Diagnoses the servers of a ZooKeeper URL.
 * @throws as {@link openZooKeeper}; UnavailableError if no server can be reached
 */
export async function diagnoseZooKeeper(url: string): Promise<Diagnosis> {
  await assertInstalled()
  const { diagnoseServers } = await import('./diagnose.js')
  return diagnoseServers(url)
}

/**
 * The other modules of the engine import the client package, so they are loaded after this.
 * @throws MissingPackageError if it is not installed
 */
async function assertInstalled(): Promise<void> {
  const client = await ifInstalled(import('signalbox-zookeeper'), 'ZooKeeper')
  if (client === undefined) throw missingPackage('ZooKeeper needs a client package', ['signalbox-zookeeper'])
}
