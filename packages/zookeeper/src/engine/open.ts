import { checkUrl, systemClock, type Engine } from 'signalbox/engine'
import { ZooKeeperEngine } from './zookeeper-engine.js'
import { parseZooKeeperUrl } from './zookeeper-url.js'

/**
 * Returns the engine for a ZooKeeper URL. `open` of Signalbox calls this when it is given such a URL, so most programs
 * only install this package.
 *
 * ```ts
 * import { open } from 'signalbox'
 * import { openZooKeeper } from 'signalbox-zookeeper/engine'
 *
 * await using box = await open({ engine: openZooKeeper('zookeeper://localhost:2181/shop') })
 * ```
 *
 * @throws InvalidArgumentError if the URL is invalid
 */
export function openZooKeeper(url: string): Engine {
  checkUrl(url)
  return new ZooKeeperEngine(parseZooKeeperUrl(url), systemClock)
}
