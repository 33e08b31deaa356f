import { systemClock } from '../../clock.js'
import type { Engine } from '../../engine/contract.js'
import { ZooKeeperEngine } from './zookeeper-engine.js'
import { parseZooKeeperUrl } from './zookeeper-url.js'

/**
 * The engine of a ZooKeeper URL.
 * @throws InvalidArgumentError when the URL is unfit
 */
export function openZooKeeper(url: string): Engine {
  return new ZooKeeperEngine(parseZooKeeperUrl(url), systemClock)
}
