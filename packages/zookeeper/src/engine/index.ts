/**
 * The ZooKeeper engine of Signalbox. `open` and `diagnose` of Signalbox import this entry when a URL begins with
 * `zookeeper:` or `zookeeper+tls:`. It uses the client of this package, and the entries of `signalbox`. Start reading
 * at `zookeeper-engine.ts`.
 *
 * @module
 */
export { diagnoseZooKeeper } from './diagnose.js'
export { openZooKeeper } from './open.js'
