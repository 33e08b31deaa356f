/** A client of ZooKeeper without dependencies: `import { ZooKeeper } from 'signalbox/zookeeper'`. */
export { CREATOR_ACL, digestId, OPEN_ACL, PERMISSIONS, type Acl } from './acl.js'
export type { ChildrenAndStat, Created, DataAndStat } from './calls.js'
export {
  AuthFailedError,
  BadVersionError,
  ConnectionLossError,
  InvalidAclError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotSentError,
  ProtocolError,
  RefusedError,
  SessionExpiredError,
  type RefusalCode,
} from './errors.js'
export type { MultiOutcome } from './multi.js'
export type { CreateOptions } from './node-kind.js'
export type { SessionState } from './session.js'
export type { Stat } from './stat.js'
export type { Transaction, TransactionAnswer } from './transaction.js'
export { oneEvent, type WatchEvent, type WatchListener } from './watch-event.js'
export type { WatchStream } from './watch-stream.js'
export {
  ZooKeeper,
  type ConnectOptions,
  type OperationOptions,
  type ReadOptions,
  type WatchOptions,
} from './zookeeper.js'
