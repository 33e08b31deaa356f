import type { Clock, Listener, SessionInfo } from 'signalbox/engine'
import type { NodePaths } from './names.js'
import type { ServerTime } from './server-time.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** A box that has joined, as the parts of its engine share it. */
export interface BoxContext {
  readonly place: ZooKeeperPlace
  readonly paths: NodePaths
  readonly member: SessionInfo
  readonly listener: Listener
  readonly clock: Clock
  readonly time: ServerTime
}
